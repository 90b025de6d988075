// How text, numbers and times are shown. Whatever a producer wrote reaches the
// page as text nodes only.

// el makes an element. Children are nodes or strings; attributes never carry what
// a producer wrote, but for hrefs made by link().
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key === 'class') node.className = value;
    else node.setAttribute(key, value === true ? '' : String(value));
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false && c !== ''));
  return node;
}

// Characters that are not seen, or that move what stands around them: controls,
// bidirectional formatting, separators of lines, zero-width and interlinear marks,
// tags, the byte order mark, and lone surrogates.
const unseen = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff]|[\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

// shown returns an element that shows a value: what is not seen is spelled out,
// and what is long is cut.
export function shown(value, most = 400, className = 'v') {
  const text = String(value);
  const node = el('span', { class: className, dir: 'auto' });
  const part = cut(text, most);
  let at = 0;
  for (const m of part.matchAll(unseen)) {
    if (m.index > at) node.append(part.slice(at, m.index));
    node.append(el('span', { class: 'ctl' }, code(m[0])));
    at = m.index + m[0].length;
  }
  node.append(part.slice(at));
  if (part.length < text.length) node.append(el('span', { class: 'soft' }, `… (${bytes(text.length)} in all)`));
  return node;
}

// plain returns a value as a string for titles and names: what is not seen is
// spelled out.
export function plain(value, most = 120) {
  const text = String(value);
  const part = cut(text, most).replace(unseen, (c) => `⟨${code(c)}⟩`);
  return part.length < text.length && text.length > most ? part + '…' : part;
}

// cut does not cut a character in two.
function cut(text, most) {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

const code = (c) => 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');

export const id = (value, most = 60) => shown(value, most, 'v id');

const whole = new Intl.NumberFormat('en');
export const number = (n) => whole.format(n);

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} KB`;
  return `${(n / 1e6).toFixed(1)} MB`;
}

export function lasts(us) {
  if (us < 1e3) return `${us} µs`;
  if (us < 1e6) return `${Math.round(us / 1e3)} ms`;
  if (us < 60e6) return `${(us / 1e6).toFixed(us < 10e6 ? 2 : 1)} s`;
  const s = Math.round(us / 1e6);
  return s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

export function price(micros) {
  const usd = micros / 1e6;
  return '$' + usd.toFixed(usd < 0.1 ? 4 : 2);
}

// day and clock show a time of the API, which is UTC.
export const day = (at) => at.slice(0, 10);
export const clock = (at) => at.slice(11, 23);
export const count = (n, what) => `${number(n)} ${what}${n === 1 ? '' : 's'}`;

export const time = (at, text) => el('time', { datetime: at, title: at.replace('T', ' ').replace('Z', ' UTC') }, text);

// indented lays out JSON for reading and changes no token: numbers stay as they
// were written. What is not seen is written as JSON's own escapes.
export function indented(json) {
  let out = '', depth = 0, i = 0;
  const line = () => '\n' + '  '.repeat(Math.min(depth, 40));
  while (i < json.length) {
    const c = json[i];
    if (c === '"') {
      let end = i + 1;
      while (end < json.length && json[end] !== '"') end += json[end] === '\\' ? 2 : 1;
      out += escaped(json.slice(i, end + 1));
      i = end + 1;
      continue;
    }
    i++;
    if (/\s/.test(c)) continue;
    if (c === '{' || c === '[') {
      let next = i;
      while (/\s/.test(json[next] ?? '')) next++;
      if (json[next] === '}' || json[next] === ']') {
        out += c + json[next];
        i = next + 1;
        continue;
      }
      depth++;
      out += c + line();
    } else if (c === '}' || c === ']') {
      depth--;
      out += line() + c;
    } else if (c === ',') out += c + line();
    else if (c === ':') out += ': ';
    else out += c;
  }
  return out;
}

const escaped = (s) => s.replace(unseen, (c) => [...Array(c.length)].map((_, i) => '\\u' + c.charCodeAt(i).toString(16).padStart(4, '0')).join(''));
