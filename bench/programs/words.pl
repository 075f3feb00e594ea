# words.pl - makes lines of words, counts, groups, matches, rewrites and sorts; prints checksums.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);

my ($per_cent) = @ARGV;
my $line_count = int(90_000 * $per_cent / 100) || 1;

my $state = 19871218;
sub below { my ($limit) = @_; $state = $state * 48271 % 2147483647; return $state % $limit; }

my @words = map { join '', map { chr 97 + below(26) } 0 .. 1 + below(9) } 1 .. 3000;
my (%count, %group, @recent);
my $changed = Digest::MD5->new;

for my $number (1 .. $line_count) {
    my @line = map { $words[ below(3000) ] } 0 .. below(16);
    $count{$_}++ for @line;
    my $key = $line[0] . below(200);
    push @{ $group{ substr $key, 0, 2 } }, { key => $key, number => $number, words => \@line };
    my $text = join ' ', @line;
    push @recent, $text;
    shift @recent if @recent > 4000;
    $text =~ s/\b([a-m])(\w+?)([n-z])\b/$3$2$1/g;
    $changed->add($text);
    if ($number % 20_000 == 0) {                  # a part of the heap is freed and grows anew
        delete @group{ grep { ord() % 3 == 0 } keys %group };
    }
}

my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[ 0 .. 9 ];
print "$_ $count{$_}\n" for @top;
my $groups = Digest::MD5->new;
for my $first (sort keys %group) {
    my @sorted = sort { $a->{key} cmp $b->{key} || $a->{number} <=> $b->{number} }
        @{ $group{$first} };
    $groups->add(join '|', map { join ',', $_->{key}, reverse @{ $_->{words} } } @sorted);
}
print 'groups ', $groups->hexdigest, ', recent ', md5_hex(join "\n", @recent), "\n";
print 'changed ', $changed->hexdigest, "\n";
