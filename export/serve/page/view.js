// What a turn and a session look like.
import { el, shown, plain, id, number, lasts, price, day, clock, count, time, indented, bytes } from './text.js';
import { ask, patient, ofTenant } from './api.js';

const arrow = () => el('span', { class: 'arrow', 'aria-hidden': 'true' }, '→');
const hear = (text) => el('span', { class: 'hear' }, text);
const tag = (kind, text) => el('span', { class: `tag ${kind}` }, text);

// address is where the page shows something. It stands behind the #, so that it
// reaches no server and no log.
export function address(parts) {
  return '#' + new URLSearchParams(Object.entries(parts).filter(([, v]) => v)).toString();
}

const link = (parts, text, attributes = {}) => el('a', { href: address(parts), ...attributes }, text);

// --- A turn

export function turn(t, show) {
  const nodes = [];
  if (t.parent) {
    nodes.push(el('p', { class: 'soft' }, 'A subagent of ', link({ tenant: t.tenant, turn: t.parent }, id(t.parent))));
  }
  for (const session of t.sessions) {
    nodes.push(el('p', { class: 'soft' }, 'Session ', link({ tenant: t.tenant, session }, id(session))));
  }
  if (t.steps.length === 0) {
    nodes.push(el('p', { class: 'hint' }, 'The archive has no record of such a turn that you may see.'));
    return nodes;
  }
  nodes.push(sums(t.sums, 'turn-sums'));
  nodes.push(el('h2', { class: 'hear', id: 'steps-title' }, 'Steps'));
  nodes.push(steps(t, show, 'steps-title'));
  if (t.subagentsCut) nodes.push(el('p', { class: 'hint' }, 'There are too many subagents below this turn to be shown.'));
  return nodes;
}

export function sums(s, name) {
  const pairs = [
    ['Records', number(s.records)],
    ['Tokens in', number(s.inputTokens)], ['Tokens out', number(s.outputTokens)],
    s.microUsd === null ? null : ['Cost', price(s.microUsd)],
    ['Latency, summed', lasts(s.latencyUs)],
    s.failed ? ['Failed', number(s.failed), 'bad'] : null,
    s.fallbacks ? ['Fallbacks', number(s.fallbacks)] : null,
    s.regressions ? ['Regressions', number(s.regressions), 'bad'] : null,
    s.cascades ? ['Cascades', number(s.cascades)] : null,
    s.notActed ? ['Not acted', number(s.notActed), 'warn'] : null,
    s.erased ? ['Erased', number(s.erased), 'gone'] : null,
  ].filter(Boolean);
  const list = el('dl', { class: 'sums', id: name });
  for (const [what, much, kind] of pairs) list.append(el('div', { class: kind }, el('dt', {}, what), el('dd', {}, much)));
  list.append(el('div', { class: 'proofs', hidden: true }, el('dt', {}, 'Proofs'), el('dd')));
  return list;
}

// steps lists the steps of a turn, and its subagents where they began.
function steps(t, show, title) {
  const most = Math.max(1, ...t.steps.map((s) => s.lastUs ?? 0));
  const list = el('ol', { class: 'steps', role: 'list', 'aria-labelledby': title });
  const waiting = [...t.subagents];
  const begun = (s) => waiting.length && waiting[0].sums.start <= s.at;
  for (const s of t.steps) {
    while (begun(s)) list.append(subagent(t.tenant, waiting.shift(), show));
    list.append(step(t, s, most, show));
  }
  for (const a of waiting) list.append(subagent(t.tenant, a, show));
  walk(list);
  return list;
}

// walk has the arrow keys go from step to step: one of them is in the order of Tab.
function walk(list) {
  const own = () => [...list.querySelectorAll(':scope > .step > .what > h3 > button')];
  own().forEach((b, i) => { b.tabIndex = i === 0 ? 0 : -1; });
  list.addEventListener('focusin', (event) => {
    const all = own();
    if (all.includes(event.target)) for (const b of all) b.tabIndex = b === event.target ? 0 : -1;
  });
  list.addEventListener('keydown', (event) => {
    const all = own();
    const at = all.indexOf(document.activeElement);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const open = all[at].getAttribute('aria-expanded') === 'true';
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) all[Math.min(Math.max(to, 0), all.length - 1)].focus();
    else if (event.key === 'ArrowRight' && !open || event.key === 'ArrowLeft' && open || event.key === 'Escape' && open) all[at].click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

let serial = 0;

function step(t, s, most, show) {
  const name = `step-${++serial}`;
  const declined = s.notActed?.declined;
  const item = el('li', { class: ['step', s.stage === 'anchor-plan' || s.stage === 'tool-loop' || s.stage === 'synthesize' || s.stage === 'post-turn' ? s.stage : '', s.failed && 'failed', declined && 'declined', s.erased && 'erased'].filter(Boolean).join(' ') });
  const button = el('button', { type: 'button', 'aria-expanded': 'false', 'aria-controls': name });
  if (s.stage) button.append(el('span', { class: 'stage' }, shown(s.stage, 60)));
  button.append(heading(s));
  const badge = el('span', { class: 'proof' }, '');
  const more = el('div', { class: 'more', id: name, role: 'group', 'aria-label': 'All of this record', hidden: true });
  item.append(
    el('span', { class: 'seq' }, s.seqWithinTurn === null ? '–' : el('span', {}, hear('Number '), number(s.seqWithinTurn))),
    el('span', { class: 'dot', 'aria-hidden': 'true' }),
    el('div', { class: 'what' }, el('h3', {}, button), ...tags(s), el('div', { class: 'facts' }, ...facts(t, s))),
    el('div', { class: 'side' },
      s.lastUs === null ? null : el('div', {}, hear('took '), el('span', { class: 'lasts' }, lasts(s.lastUs))),
      s.lastUs === null ? null : bar(s.lastUs / most),
      el('div', {}, time(s.at, clock(s.at))), badge),
    more,
  );
  button.addEventListener('click', () => {
    const open = button.getAttribute('aria-expanded') !== 'true';
    button.setAttribute('aria-expanded', String(open));
    item.classList.toggle('open', open);
    more.hidden = !open;
    if (open && !more.hasChildNodes()) fill(more, t, s, show);
  });
  show.step(s, badge, item);
  return item;
}

function bar(share) {
  const filled = el('span');
  filled.style.width = `${Math.max(share * 100, 1).toFixed(1)}%`;
  return el('div', { class: 'bar', 'aria-hidden': 'true' }, filled);
}

const kinds = {
  decision: 'Decision', 'llm-request': 'Model request', 'llm-response': 'Model response', 'tool-call': 'Tool call', 'world-mutation': 'Change in the world',
  'policy-decision': 'Policy decision', rejected: 'Record that could not be archived as it was', redaction: 'Order to erase', 'redaction-cancelled': 'Order to erase, taken back',
  'erasure-done': 'Receipt of an erasure', 'retention-cut': 'Retention cut', 'legal-hold': 'Legal hold', gap: 'Gap', 'chain-reset': 'Chain reset',
  'source-chain-reset': 'Chain reset at the source', 'source-rotation': 'Log rotation at the source', 'queue-dropped': 'Records dropped at the source',
};

// heading says what a step is, in a few words.
function heading(s) {
  if (s.erased?.hard) return 'Erased';
  if (s.kind !== 'call') {
    const what = kinds[s.kind] ?? s.kind;
    return s.tool ? el('span', {}, `${what}: `, shown(s.tool, 120)) : what;
  }
  if (s.tool) return shown(s.tool, 120);
  if (s.model?.resolved && s.model.resolved !== 'unresolved') return shown(s.model.resolved, 120);
  return s.callClass ? shown(s.callClass, 120) : 'Call';
}

function tags(s) {
  const all = [];
  if (s.status && s.status !== 'ok') all.push(tag(s.failed ? 'bad' : 'warn', [shown(s.status, 60), s.httpStatus ? ` ${s.httpStatus}` : '']));
  if (s.fallback?.regression) all.push(tag('bad', 'ladder regression'));
  if (s.repeatOf !== null) all.push(tag('quiet', `repeats row ${number(s.repeatOf)}`));
  if (s.erased) all.push(tag('gone', s.erased.pending.length ? 'hidden, to be erased' : 'erased'));
  if (s.redactionPolicy) all.push(tag('quiet', 'scrubbed'));
  return all;
}

function facts(t, s) {
  const all = [];
  if (s.model) all.push(model(s.model, s));
  all.push(ladder(s.model, s.fallback));
  if (s.providerCascade) all.push(pivot(s.providerCascade));
  if (s.toolCascade) all.push(cascade(s.toolCascade));
  const spent = cost(s);
  if (spent.length) all.push(el('p', { class: 'num' }, ...join(spent, ' · ')));
  if (s.rejected) all.push(el('p', {}, 'Rejected: ', shown(s.rejected, 80)));
  if (s.notActed) all.push(notActed(s.notActed));
  if (s.erased) all.push(erased(s.erased));
  return all.filter(Boolean);
}

const join = (list, between) => list.flatMap((x, i) => (i ? [between, x] : [x]));

function model(m, s) {
  const words = [];
  const none = !m.resolved || m.resolved === 'unresolved';
  if (m.requested && m.requested !== m.resolved && !m.chain.length && !s.fallback) {
    words.push(el('span', {}, hear('asked for '), shown(m.requested, 80), arrow(), none ? 'no model ran' : [hear('ran '), el('b', {}, shown(m.resolved, 80))]));
  } else if (!none && (s.tool || s.kind !== 'call')) words.push(shown(m.resolved, 80));
  if (m.provider) words.push(shown(m.provider, 60));
  if (m.transport) words.push(shown(m.transport, 60));
  if (m.reason) words.push(shown(m.reason, 60));
  return words.length ? el('p', {}, ...join(words, ' · ')) : null;
}

const mostTried = 20;

// ladder shows the models that were tried, and the one that ran.
function ladder(m, f) {
  const tried = m?.chain.length ? m.chain : f?.from ? [f.from] : [];
  const ran = f?.to || m?.resolved;
  if (!tried.length && !f) return null;
  const p = el('p', {}, 'Ladder ');
  for (const name of tried.slice(0, mostTried)) p.append(el('span', { class: 'tried' }, hear('tried '), shown(name, 60)), arrow());
  if (tried.length > mostTried) p.append(`${number(tried.length - mostTried)} more`, arrow());
  p.append(hear('then '), el('b', {}, shown(ran || '?', 80)));
  const words = [];
  if (f?.reason) words.push(shown(f.reason, 80));
  if (f && f.step !== null) words.push(f.originalStep === null ? `step ${number(f.step)}` : `step ${number(f.originalStep)} to ${number(f.step)}`);
  else if (m && m.rung !== null) words.push(`rung ${number(m.rung)}`);
  if (f?.inFamily === false) words.push('out of the family');
  if (words.length) p.append(' (', ...join(words, ', '), ')');
  return p;
}

function pivot(c) {
  const p = el('p', {}, 'Provider ', shown(c.from || '?', 60), arrow(), el('b', {}, shown(c.to || '?', 60)));
  for (const word of [c.trigger, c.errorType]) if (word) p.append(', ', shown(word, 80));
  return p;
}

function cascade(c) {
  const p = el('p', {}, 'Tool ', shown(c.from || '?', 80), arrow(), c.to ? el('b', {}, shown(c.to, 80)) : el('b', {}, 'none was left'));
  if (c.failureClass) p.append(', ', shown(c.failureClass, 80));
  if (c.capability) p.append(', for ', shown(c.capability, 80));
  return p;
}

function cost(s) {
  const all = [];
  if (s.inputTokens !== null || s.outputTokens !== null) all.push(`${number(s.inputTokens ?? 0)} tokens in, ${number(s.outputTokens ?? 0)} out`);
  if (s.cacheReadTokens) all.push(`${number(s.cacheReadTokens)} from cache`);
  if (s.microUsd !== null) all.push(price(s.microUsd));
  if (s.finishReason && s.finishReason !== 'stop' && !s.failed) all.push(el('span', {}, 'ended by ', shown(s.finishReason, 60)));
  return all;
}

const reasons = {
  human: 'A human was asked', guard: 'A guard rejected the answer', aborted: 'The user ended it', policy: 'A policy denied it', noAction: 'Decided not to act',
};

function notActed(n) {
  const p = el('p', { class: n.declined ? 'note' : 'note human' }, el('b', {}, reasons[n.why] ?? 'Not acted'));
  if (n.text) p.append(': ', shown(n.text, 300));
  if (n.answer) p.append(n.text && /[.?!]$/.test(n.text) ? ' ' : '. ', 'Answer: ', el('b', {}, shown(n.answer, 80)));
  return p;
}

function erased(e) {
  const what = e.hard ? 'All but its place in the chain' : e.all ? 'All content' : e.parts.length ? e.parts.join(', ') : 'The user';
  const p = el('p', { class: 'note gone' }, el('b', {}, what), e.user && !e.hard && (e.all || e.parts.length) ? ' and the user' : '',
    e.pending.length ? ' is hidden and will be erased, by order ' : ' was erased, by order ', id(e.by));
  if (!e.pending.length) p.append('. Its hash and its place in the chain stay.');
  return p;
}

// fill shows all of a record, its proof, and where it stands.
async function fill(more, t, s, show) {
  const where = el('dl', { class: 'pairs' });
  const pair = (name, value) => value !== undefined && value !== '' && value !== null && where.append(el('dt', {}, name), el('dd', {}, value));
  pair('Place', el('span', {}, shown(s.topic, 80), ', ', id(s.place)));
  pair('Record id', s.recordId && id(s.recordId));
  pair('Row hash', id(s.rowHash, 70));
  pair('Time', time(s.at, `${day(s.at)} ${clock(s.at)} UTC`));
  pair('User', s.user && shown(s.user, 120));
  pair('Actor', s.actor && shown(s.actor, 60));
  pair('Scrubbed by', s.redactionPolicy && id(s.redactionPolicy, 80));
  const proof = el('div', { role: 'group', 'aria-label': 'Proof' });
  const record = el('div', {}, el('p', { class: 'soft' }, 'Loading the record…'));
  more.append(where, el('h4', {}, 'Proof'), proof, el('h4', {}, 'Record'), record);
  show.proof(s, proof);
  try {
    const text = await (await ask(ofTenant(t.tenant, 'records', s.place))).text();
    record.replaceChildren(json(text));
  } catch (error) {
    record.replaceChildren(el('p', {}, `The record cannot be shown: ${error.message}`));
  }
}

const firstPart = 20000;

// json shows the text of a record; what is long by and by.
function json(text) {
  const all = indented(text);
  const pre = el('pre', { tabindex: '0', role: 'group', 'aria-label': 'The record as JSON' }, all.slice(0, firstPart));
  if (all.length <= firstPart) return pre;
  const rest = el('button', { type: 'button' }, `Show all of it (${bytes(all.length)})`);
  rest.addEventListener('click', () => { pre.textContent = all; rest.remove(); pre.focus(); });
  return el('div', {}, pre, el('div', { class: 'buttons' }, rest));
}

// --- Subagents

function subagent(tenant, a, show) {
  const nested = el('div', { hidden: true });
  const deeper = a.subagents.length ? el('ul', {}, a.subagents.map((b) => lower(tenant, b))) : null; // nested has them too
  const button = el('button', { type: 'button', 'aria-expanded': 'false' }, 'Show its steps', el('span', { class: 'hear' }, ' here: ', plain(a.turn)));
  button.addEventListener('click', async () => {
    const open = button.getAttribute('aria-expanded') !== 'true';
    button.setAttribute('aria-expanded', String(open));
    nested.hidden = !open;
    if (deeper) deeper.hidden = open;
    if (open && !nested.hasChildNodes()) {
      try {
        const title = `sub-${++serial}`;
        const t = await patient(ofTenant(tenant, 'turns', a.turn) + '/timeline' + (a.session ? '?' + new URLSearchParams({ session: a.session }) : ''));
        t.tenant = tenant;
        nested.append(el('h4', { class: 'hear', id: title }, 'Steps of the subagent'), steps(t, show, title));
      } catch (error) {
        nested.append(el('p', {}, `It cannot be shown: ${error.message}`));
      }
    }
  });
  const card = el('div', { class: 'card' },
    el('h3', {}, 'Subagent ', link({ tenant, session: a.session, turn: a.turn }, id(a.turn))),
    el('span', { class: 'buttons' }, button),
    el('p', { class: 'soft num' }, summary(a.sums)), nested);
  if (deeper) card.append(deeper);
  return el('li', { class: 'sub' }, card);
}

function lower(tenant, a) {
  return el('li', {}, 'Subagent ', link({ tenant, session: a.session, turn: a.turn }, id(a.turn)), el('span', { class: 'soft num' }, ` · ${summary(a.sums)}`),
    a.subagents.length ? el('ul', {}, a.subagents.map((b) => lower(tenant, b))) : null);
}

function summary(s) {
  const words = [count(s.records, 'record'), `${number(s.inputTokens + s.outputTokens)} tokens`, lasts(s.latencyUs)];
  if (s.microUsd !== null) words.push(price(s.microUsd));
  if (s.failed) words.push(`${number(s.failed)} failed`);
  if (s.erased) words.push(`${number(s.erased)} erased`);
  return words.join(' · ');
}

// --- A session

export function session(tenant, s) {
  if (s.turns.length === 0) return [el('p', { class: 'hint' }, 'The archive has no record of such a session that you may see.')];
  const body = el('tbody');
  for (const t of s.turns) {
    body.append(el('tr', {},
      el('th', { scope: 'row' }, link({ tenant, session: s.session, turn: t.turn }, id(t.turn)), t.parent ? el('span', { class: 'soft' }, ' under ', id(t.parent)) : null),
      el('td', {}, time(t.sums.start, `${day(t.sums.start)} ${clock(t.sums.start)}`)), el('td', {}, number(t.sums.records)),
      el('td', {}, number(t.sums.inputTokens)), el('td', {}, number(t.sums.outputTokens)), el('td', {}, t.sums.microUsd === null ? '–' : price(t.sums.microUsd)),
      el('td', {}, lasts(t.sums.latencyUs)), el('td', {}, t.sums.failed ? number(t.sums.failed) : '–'), el('td', {}, t.sums.notActed ? number(t.sums.notActed) : '–'),
      el('td', {}, t.sums.erased ? number(t.sums.erased) : '–')));
  }
  const heads = ['Turn', 'Began (UTC)', 'Records', 'Tokens in', 'Tokens out', 'Cost', 'Latency', 'Failed', 'Not acted', 'Erased'];
  return [el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Turns of the session' }, el('table', { class: 'turns' },
    el('caption', {}, count(s.turns.length, 'turn'), ', newest first', s.cut ? '; the session has older records too' : ''),
    el('thead', {}, el('tr', {}, heads.map((h) => el('th', { scope: 'col' }, h)))), body))];
}

// --- What is recent

export function recent(tenant, r, now) {
  return r.sessions.map((s) => {
    const turns = el('ul', { class: 'plain' }, s.turns.map((t) => el('li', {}, link({ tenant, session: s.session, turn: t.turn }, [el('span', { class: 'id' }, plain(t.turn, 60)), el('span', { class: 'soft num' }, number(t.records), hear(' records'))], {
      class: t.parent ? 'child' : null, 'aria-current': now.turn === t.turn && now.tenant === tenant ? 'page' : null,
    }))));
    const head = s.session
      ? link({ tenant, session: s.session }, [el('span', { class: 'id' }, plain(s.session, 60)), el('span', { class: 'soft num' }, time(s.last, clock(s.last).slice(0, 5)))], { class: 'head', 'aria-current': now.session === s.session && !now.turn ? 'page' : null })
      : el('span', { class: 'head soft' }, 'Without a session');
    return el('li', {}, head, turns);
  });
}

// --- Proofs

const marks = { proved: '✓', unsigned: '✓', partly: '◐', waiting: '…', failed: '✕' };
const said = { proved: 'proved', unsigned: 'checks, unsigned', partly: 'place proved', waiting: 'no anchor yet', failed: 'does not check' };

export function badge(node, r) {
  node.className = `proof ${r.state}`;
  node.title = r.text;
  node.replaceChildren(el('span', { 'aria-hidden': 'true' }, marks[r.state] ?? '?', ' '), said[r.state] ?? plain(r.state));
}

export function proof(node, r, download) {
  const pairs = el('dl', { class: 'pairs' }, el('dt', {}, 'Anchor'), el('dd', {}, shown(r.anchor)), el('dt', {}, 'Key'), el('dd', {}, shown(r.key)));
  const list = (title, all) => (all.length ? [el('p', { class: 'soft' }, title), el('ul', {}, all.map((x) => el('li', {}, shown(x, 600))))] : []);
  const button = el('button', { type: 'button' }, 'Download the proof');
  button.addEventListener('click', download);
  node.replaceChildren(el('p', {}, r.text), pairs, ...list('Proved', r.proved), ...list('Not proved', r.notProved), r.state === 'waiting' || r.state === 'failed' ? '' : el('div', { class: 'buttons' }, button));
}
