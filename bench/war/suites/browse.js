// browse.js - a browser's day in one engine: pages are opened, used and closed, and rest in between.
// SPDX-License-Identifier: MIT
//
// Needs `qjs --std`, or jsc, for pauses: what goes back to the system while nothing happens is half of
// the picture.
import { marked } from 'marked';
import postcss from 'postcss';

const random = new Random(20100216);
const DAYS = 4;
const PAGES_A_DAY = scaled(24);
const PAUSE_S = Math.max(1, 6 * SCALE / 100);

function pause() {
  if (typeof os === 'object' && os.sleep) os.sleep(PAUSE_S * 1000);
  else if (typeof sleepSeconds === 'function') sleepSeconds(PAUSE_S);
}

// What browsers do when a tab is closed or the user looks away.
function collect() {
  if (typeof std === 'object' && std.gc) std.gc();
  else if (typeof fullGC === 'function') fullGC();
}

class Node {
  constructor(parent, tag) {
    this.parent = parent;
    this.tag = tag;
    this.attributes = new Map();
    this.children = [];
    this.text = '';
    this.listeners = [];
  }

  add(tag) {
    const child = new Node(this, tag);
    this.children.push(child);
    return child;
  }
}

// Elements and texts of what marked writes; enough of HTML for that.
function treeOf(html) {
  const root = new Node(null, 'body');
  let at = root;
  for (const [, closing, tag, text] of html.matchAll(/<(\/?)([a-z0-9]+)[^>]*>|([^<]+)/g)) {
    if (text !== undefined) {
      at.text += text;
    } else if (closing) {
      at = at.parent ?? root;
    } else {
      const child = at.add(tag);
      child.attributes.set('id', random.word());
      child.attributes.set('class', random.words(2));
      child.listeners.push((event) => { child.text += event; });
      if (tag !== 'br' && tag !== 'hr') at = child;
    }
  }
  return root;
}

function article() {
  const lines = [];
  for (let i = 0; i < 6; i++) {
    lines.push(`## ${random.words(4)}`, '', random.words(60), '');
    for (let j = 0; j < 5; j++) lines.push(`- ${random.words(4)} **${random.word()}**`);
    lines.push('');
  }
  return lines.join('\n');
}

function sheet() {
  const rules = [];
  for (let i = 0; i < 120; i++) {
    rules.push(`.${random.word()} .${random.word()} { ${random.word()}: ${random.below(99)}px; ${random.word()}: ${random.word()} }`);
  }
  return rules.join('\n');
}

function image() {
  const bytes = new Uint8Array(20000 + random.below(400000));
  for (let i = 0; i < bytes.length; i += 512) bytes[i] = random.below(256);
  return bytes;
}

function open() {
  const page = { bodies: [], sheets: [], images: [], model: null, timeline: [] };
  for (let i = 3 + random.below(8); i > 0; i--) page.bodies.push(treeOf(marked.parse(article())));
  for (let i = 1 + random.below(3); i > 0; i--) page.sheets.push(postcss.parse(sheet()));
  for (let i = random.below(12); i > 0; i--) page.images.push(image());
  const records = [];
  for (let i = random.below(1500); i > 0; i--) records.push({ id: i, name: random.words(2), at: [i, -i] });
  page.model = JSON.parse(JSON.stringify(records));
  return page;
}

// Nodes come and go, texts change, messages arrive and are kept for a while.
function use(page) {
  for (let i = 0; i < 400; i++) {
    let node = page.bodies[random.below(page.bodies.length)];
    while (node.children.length > 0 && random.below(3) > 0) node = node.children[random.below(node.children.length)];
    if (random.below(2) === 0) node.add('span').text = random.words(3);
    else if (node.children.length > 4) node.children.splice(random.below(node.children.length), 1);
    for (const listener of node.listeners) listener('.');
    page.timeline.push({ words: random.words(8), when: i });
    if (page.timeline.length > 300) page.timeline = page.timeline.slice(150);
  }
  if (page.images.length > 0 && random.below(2) === 0) page.images[random.below(page.images.length)] = image();
}

function count(node) {
  let sum = 1 + node.text.length;
  for (const child of node.children) sum += count(child);
  return sum;
}

function day(number) {
  let tabs = [], opened = 0, sum = 0;
  while (opened < PAGES_A_DAY) {
    tabs.push(open());
    opened++;
    for (let i = 0; i < 2; i++) use(tabs[random.below(tabs.length)]);
    // Most pages are left soon, some stay open all day.
    if (tabs.length > 4 && random.below(5) < 2) tabs.splice(random.below(tabs.length), 1);
  }
  pause();
  for (const page of tabs) for (const body of page.bodies) sum += count(body);
  say(`day ${number}: ${tabs.length} tabs, ${sum}`);
  tabs = tabs.slice(0, 2);
  collect();
  pause();
  for (let i = 0; i < scaled(8); i++) {
    use(tabs[i % tabs.length]);
    tabs[i % tabs.length] = open();
  }
  tabs = [];
  collect();
  pause();
}

for (let number = 1; number <= DAYS; number++) day(number);
