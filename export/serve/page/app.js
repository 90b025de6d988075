// The timeline page: what is asked for stands behind the # of the address.
import { el, plain, id, count } from './text.js';
import { ask, follow, json, ofTenant, patient, Problem, token } from './api.js';
import * as view from './view.js';

const $ = (name) => document.getElementById(name);
const state = { tenants: [], now: {}, round: 0, live: null, recentUntil: 0 };

const wanted = () => {
  const p = new URLSearchParams(location.hash.slice(1));
  return { tenant: p.get('tenant') ?? '', session: p.get('session') ?? '', turn: p.get('turn') ?? '' };
};

const say = (text) => { $('status').textContent = text; };

function alarm(text) {
  $('alarm').textContent = text;
  $('alarm').hidden = !text;
}

function title(...words) {
  $('title').replaceChildren(...words);
  document.title = `${plain($('title').textContent, 80)} · ledgerlake`;
}

// --- The token

function gate(text) {
  state.live?.abort();
  for (const name of ['find', 'tools', 'recent']) $(name).hidden = true;
  $('view').replaceChildren();
  title('What an agent did, and why');
  $('gate').hidden = false;
  say(text);
  $('token').focus();
}

$('gate').addEventListener('submit', (event) => {
  event.preventDefault();
  token.set($('token').value);
  $('token').value = '';
  open();
});

$('forget').addEventListener('click', () => {
  token.forget();
  state.round++;
  alarm('');
  gate('The token is forgotten.');
});

async function open() {
  alarm('');
  if (!token.get()) return gate('');
  say('Loading…');
  try {
    state.tenants = (await json('v1/tenants')).tenants;
  } catch (error) {
    return failed(error);
  }
  $('gate').hidden = true;
  for (const name of ['find', 'tools', 'recent']) $(name).hidden = false;
  $('tenant').replaceChildren(...state.tenants.map((t) => {
    const option = el('option', {}, plain(t, 80));
    option.value = t;
    return option;
  }));
  await show();
}

function failed(error) {
  if (error.name === 'AbortError') return;
  if (error instanceof Problem && error.status === 401) {
    token.forget();
    gate('The server knows no such token, or its time is over.');
    return;
  }
  say('');
  alarm(error instanceof Problem ? sentence(error.message) : 'The server cannot be reached.');
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

// --- What is shown

async function show(quietly = false) {
  const now = { ...wanted() };
  now.tenant ||= state.tenants[0] ?? '';
  const round = ++state.round;
  const moved = now.tenant !== state.now.tenant;
  state.now = now;
  $('tenant').value = now.tenant;
  $('session').value = now.session;
  $('turn').value = now.turn;
  if (!quietly) {
    alarm('');
    say('Loading…');
  }
  if (moved) listen();
  try {
    const [, nodes] = await Promise.all([quietly && Date.now() < state.recentUntil ? null : recent(now, round), now.turn ? turn(now, round) : now.session ? session(now, round) : hint(now)]);
    if (round !== state.round) return;
    $('view').replaceChildren(...nodes.nodes);
    title(...nodes.title);
    say(nodes.text);
    nodes.after?.();
  } catch (error) {
    if (round === state.round) failed(error);
  }
}

async function recent(now, round) {
  if (!now.tenant) return;
  const r = await json(ofTenant(now.tenant, 'recent'));
  if (round !== state.round) return;
  state.recentUntil = Date.now() + 10000;
  $('recent-list').replaceChildren(...view.recent(now.tenant, r, now));
  if (!r.sessions.length) $('recent-list').append(el('li', { class: 'soft' }, 'Nothing yet.'));
}

function hint(now) {
  const text = now.tenant ? 'Choose a turn or a session that is recent, or find one by its id.' : 'The token is good for no tenant that has records.';
  return { nodes: [el('p', { class: 'hint' }, text)], title: ['What an agent did, and why'], text: '' };
}

async function session(now) {
  const s = await patient(ofTenant(now.tenant, 'sessions', now.session) + '/turns');
  s.session = now.session;
  incomplete(s.complete);
  return { nodes: view.session(now.tenant, s), title: ['Session ', id(now.session)], text: `${count(s.turns.length, 'turn')}.` };
}

async function turn(now, round) {
  const query = now.session ? '?' + new URLSearchParams({ session: now.session }) : '';
  const t = await patient(ofTenant(now.tenant, 'turns', now.turn) + '/timeline' + query);
  t.tenant = now.tenant;
  incomplete(t.complete);
  const checks = new Checks(now.tenant, round);
  const nodes = view.turn(t, checks);
  const begin = t.steps.length ? `, ${t.sums.start.slice(0, 10)} ${t.sums.start.slice(11, 19)} UTC` : '';
  return { nodes, title: ['Turn ', id(now.turn)], text: `${count(t.steps.length, 'step')}${begin}.`, after: () => checks.run($('turn-sums')) };
}

function incomplete(complete) {
  if (!complete) alarm('Some of what is stored does not fit together, so that this may not be all. Have the archive verified.');
}

// --- Proofs

// Checks are the proofs of the steps that are shown. The server makes and checks
// them, a few at a time.
class Checks {
  constructor(tenant, round) {
    Object.assign(this, { tenant, round, queue: [], results: new Map(), hearing: new Map(), ready: false });
  }

  step(s, badge) {
    badge.textContent = 'checking…';
    this.queue.push({ s, badge });
    if (this.ready) this.run(this.sums);
  }

  // proof shows the proof of a step as soon as it is known.
  proof(s, node) {
    node.textContent = 'Checking…';
    const tell = (r) => view.proof(node, r, () => download(this.tenant, s, node));
    const known = this.results.get(s.place);
    if (known) tell(known);
    else this.hearing.set(s.place, tell);
  }

  async run(sums) {
    this.sums = sums;
    this.ready = true;
    await Promise.all(Array.from({ length: 4 }, () => this.work()));
    if (this.round !== state.round || this.told) return;
    this.told = true;
    say(`${$('status').textContent} ${this.sentence()}`);
  }

  async work() {
    for (let next; (next = this.queue.shift()) && this.round === state.round;) {
      let r;
      try {
        r = await patient(ofTenant(this.tenant, 'records', next.s.place) + '/check');
      } catch (error) {
        next.badge.textContent = 'not checked';
        next.badge.title = error.message;
        this.hearing.get(next.s.place)?.({ state: 'failed', text: `It could not be checked: ${error.message}`, anchor: 'not known', key: 'not known', proved: [], notProved: [] });
        continue;
      }
      this.results.set(next.s.place, r);
      view.badge(next.badge, r);
      this.hearing.get(next.s.place)?.(r);
      this.count();
    }
  }

  of(name) { return [...this.results.values()].filter((r) => r.state === name).length; }

  count() {
    const box = this.sums?.querySelector('.proofs');
    if (!box) return;
    const bad = this.of('failed');
    box.hidden = false;
    box.className = `proofs ${bad ? 'bad' : this.of('proved') === this.results.size ? 'good' : 'warn'}`;
    box.lastChild.textContent = bad ? `${bad} fail` : `${this.of('proved')} of ${this.results.size}`;
  }

  sentence() {
    const words = [['proved', 'proved'], ['unsigned', 'checked, unsigned'], ['partly', 'proved in part'], ['waiting', 'waiting for an anchor'], ['failed', 'NOT in order']];
    const said = words.filter(([name]) => this.of(name)).map(([name, text]) => `${this.of(name)} ${text}`);
    return said.length ? `Proofs: ${said.join(', ')}.` : '';
  }
}

async function download(tenant, s, node) {
  try {
    const body = await (await ask(ofTenant(tenant, 'records', s.place) + '/proof')).blob();
    const a = el('a', { href: URL.createObjectURL(body), download: `proof-${s.rowHash.slice(0, 16)}.json` });
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  } catch (error) {
    node.append(el('p', { role: 'alert' }, sentence(error.message)));
  }
}

// --- Live

// listen follows the tenant's records where that is wanted, and shows the turn
// again when one of it comes.
function listen() {
  state.live?.abort();
  state.live = null;
  if (!$('live').checked || !state.now.tenant) return;
  const live = state.live = new AbortController();
  let due = 0;
  follow(state.now.tenant, (event) => {
    if (event.name !== 'record') return;
    clearTimeout(due);
    due = setTimeout(() => { if (!live.signal.aborted && idle()) show(true); }, 400);
  }, live.signal).catch(failed);
}

// idle says whether nothing would be lost by showing all anew.
const idle = () => !document.querySelector('#view [aria-expanded=true]') && !$('find').contains(document.activeElement);

$('live').addEventListener('change', listen);

// --- Finding

$('find').addEventListener('submit', (event) => {
  event.preventDefault();
  const to = view.address({ tenant: $('tenant').value, session: $('session').value.trim(), turn: $('turn').value.trim() });
  if (to === location.hash) show();
  else location.hash = to;
});

$('tenant').addEventListener('change', () => { location.hash = view.address({ tenant: $('tenant').value }); });

$('skip').addEventListener('click', (event) => {
  event.preventDefault();
  $('main').focus();
});

window.addEventListener('hashchange', async () => {
  if ($('gate').hidden === false) return;
  await show();
  $('main').focus({ preventScroll: true });
  window.scrollTo(0, 0);
});

if (matchMedia('(max-width: 60rem)').matches) $('recent-fold').open = false;
open();
