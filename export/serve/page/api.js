// The way to the server. The token lies in sessionStorage, and goes out in one
// header only.

const key = 'ledgerlake.token';
const base = new URL('.', document.baseURI);

export const token = {
  get: () => sessionStorage.getItem(key),
  set: (text) => sessionStorage.setItem(key, text.trim()),
  forget: () => sessionStorage.removeItem(key),
};

// A Problem is an answer that is an error: RFC 9457.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ? `${body.title}: ${body.detail}` : body.title);
    this.status = status;
    this.name = body.type?.split(':').pop() ?? '';
  }
}

// path makes a path of segments, which may have any character.
export const path = (...segments) => segments.map(encodeURIComponent).join('/');

export const ofTenant = (tenant, ...segments) => 'v1/tenants/' + path(tenant, ...segments);

export async function ask(to, { signal, headers = {} } = {}) {
  const response = await fetch(new URL(to, base), {
    headers: { Authorization: `Bearer ${token.get() ?? ''}`, ...headers },
    cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer', signal,
  });
  if (response.ok) return response;
  let body = {};
  try { body = await response.json(); } catch { /* not ours: a proxy's */ }
  const problem = new Problem(response.status, { title: `the server answered ${response.status}`, ...body });
  problem.after = Number(response.headers.get('Retry-After')) || 0;
  throw problem;
}

export const json = async (to, options) => (await ask(to, options)).json();

// patient asks again where the server is busy.
export async function patient(to, options) {
  for (let tries = 0; ; tries++) {
    try {
      return await json(to, options);
    } catch (error) {
      if (!(error instanceof Problem) || ![429, 502, 503].includes(error.status) || tries >= 5) throw error;
      await new Promise((done) => setTimeout(done, 1000 * Math.max(error.after, 1)));
    }
  }
}

// follow hears of records as they are archived. It is a stream of fetch and not an
// EventSource, which could not send the token but in the address. It comes back
// where it was cut off, and ends when signal says so.
export async function follow(tenant, hear, signal) {
  let last = '';
  for (let wait = 1; !signal.aborted; wait = Math.min(wait * 2, 30)) {
    try {
      const headers = last ? { 'Last-Event-ID': last } : {};
      const response = await ask(ofTenant(tenant, 'tail'), { signal, headers });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = '';
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        wait = 1;
        buffer += value;
        let end;
        while ((end = buffer.indexOf('\n\n')) >= 0) {
          const event = parse(buffer.slice(0, end));
          buffer = buffer.slice(end + 2);
          if (event.id) last = event.id;
          if (event.name) hear(event);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && [401, 404].includes(error.status)) throw error;
      if (error instanceof Problem && error.status === 409) last = '';
    }
    await new Promise((done) => setTimeout(done, wait * 1000));
  }
}

function parse(text) {
  const event = { name: '', id: '', data: '' };
  for (const line of text.split('\n')) {
    const at = line.indexOf(': ');
    if (at <= 0) continue;
    const value = line.slice(at + 2);
    if (line.startsWith('event')) event.name = value;
    else if (line.startsWith('id')) event.id = value;
    else if (line.startsWith('data')) event.data = value;
  }
  return event;
}
