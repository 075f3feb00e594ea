// parse.js - documents of the web read and written: Markdown, style sheets, JSON, templates.
// SPDX-License-Identifier: MIT
import { marked } from 'marked';
import postcss from 'postcss';
import lodash from 'lodash';

function markdown(random) {
  const lines = [];
  for (let i = 0; i < 6; i++) {
    lines.push('#'.repeat(1 + random.below(4)) + ' ' + random.words(4), '');
    lines.push(`${random.words(12)} **${random.words(2)}** _${random.word()}_ \`${random.word()}\``);
    lines.push(`[${random.words(3)}](https://${random.word()}.example/${random.word()})`, '');
    for (let j = 1 + random.below(6); j > 0; j--) lines.push(`- ${random.words(6)}`);
    lines.push('', `> ${random.words(15)}`, '', '```', random.words(10), '```', '');
    lines.push('| a | b |', '|---|---|', `| ${random.word()} | ${random.words(3)} |`, '');
  }
  return lines.join('\n');
}

function styles(random) {
  const rules = [];
  for (let i = 0; i < 250; i++) {
    const inside = [];
    for (let j = 1 + random.below(8); j > 0; j--) {
      inside.push(`  ${random.word()}-${random.word()}: ${random.below(900)}px ${random.word()};`);
    }
    const rule = `.${random.word()} > #${random.word()}:hover, ${random.word()} {\n${inside.join('\n')}\n}`;
    rules.push(i % 10 ? rule : `@media (min-width: ${random.below(2000)}px) {\n${rule}\n}`);
  }
  return rules.join('\n');
}

function records(random) {
  const all = [];
  for (let i = 0; i < 400; i++) {
    all.push({
      id: i, name: random.words(2), group: 'g' + random.below(20), price: random.below(100000) / 100,
      tags: random.words(1 + random.below(6)).split(' '),
      where: { street: random.words(3), town: random.word(), at: [random.below(180), random.below(90)] },
    });
  }
  return all;
}

const list = lodash.template(
  '<ul><% _.forEach(rows, function (row) { %><li id="<%= row.id %>"><%- row.name %> <%= row.price %></li><% }) %></ul>',
  { imports: { _: lodash } });

function page(random) {
  let sum = CHECKSUM_START;
  for (let i = 0; i < 10; i++) sum = checksum(marked.parse(markdown(random)), sum);

  const sheet = postcss.parse(styles(random));
  sheet.walkDecls((declaration) => { declaration.value = declaration.value.replace('px', 'rem'); });
  sum = checksum(sheet.toString(), sum);

  const rows = JSON.parse(JSON.stringify(records(random)));
  const groups = lodash.groupBy(rows, 'group');
  const totals = lodash.mapValues(groups, (group) => lodash.round(lodash.sumBy(group, 'price'), 2));
  const sorted = lodash.sortBy(lodash.cloneDeep(rows), ['price', 'name']);
  sum = checksum(JSON.stringify([totals, lodash.map(sorted, 'id')], null, 1), sum);
  return checksum(list({ rows: sorted }), sum);
}

const random = new Random(20100203);
for (let i = scaled(10); i > 0; i--) {
  say('page ' + page(random));
}
