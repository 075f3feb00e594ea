# words.pl - counts, groups, matches and rewrites the lines of a file; prints what it found.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);

my ($path) = @ARGV;
open my $file, '<', $path or die "$path: $!";

my (%count, %by_first, @recent);
my ($line_count, $dates, $longest) = (0, 0, '');
my $rewritten = Digest::SHA->new(256);

while (my $line = <$file>) {
    chomp $line;
    my ($key, $number, $text) = split /\t/, $line, 3;
    my @words = split / /, $text;
    $count{$_}++ for @words;
    push @{ $by_first{ substr $key, 0, 3 } }, { key => $key, number => $number, words => [@words] };
    push @recent, $text;
    shift @recent if @recent > 5000;
    $dates++ if $key =~ /^([0-9]{2})[a-f]+([0-9]+)/;
    (my $changed = $text) =~ s/\b([a-m])(\w+?)([n-z])\b/$3$2$1/g;
    $rewritten->add($changed);
    $longest = $changed if length $changed > length $longest;
    if (++$line_count % 200_000 == 0) {          # a large part of the heap is freed and grows anew
        delete @by_first{ grep { hex($_) % 3 == 0 } keys %by_first };
    }
}

my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[ 0 .. 19 ];
printf "%-12s %9d\n", $_, $count{$_} for @top;
for my $first (sort keys %by_first) {
    my @records = sort { $a->{number} <=> $b->{number} || $a->{key} cmp $b->{key} } @{ $by_first{$first} };
    my $joined = join '|', map { join ',', $_->{key}, reverse @{ $_->{words} } } @records;
    printf "%s %6d %s\n", $first, scalar @records, sha256_hex($joined);
}
print "lines $line_count, keys like dates $dates, recent ", sha256_hex(join "\n", @recent), "\n";
print "rewritten ", $rewritten->hexdigest, ", longest ", length $longest, "\n";
