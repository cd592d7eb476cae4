// Replays a tunnel's history beside the page, which goes on meanwhile. It fetches the history itself, so that nothing as long
// passes through the page. Both sides send texts of JSON: `{ id, load }` or `{ id, ask }` comes in, and
// `{ id, report }` (null when something was loaded) or `{ id, error }` goes out.
import init, { History } from './exitpilot_shared.js';

const ready = init();
let history;
let newest = 0;

async function load(address) {
  const answer = await fetch(address, { credentials: 'same-origin' });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => null);
    throw { status: answer.status, problem };
  }
  return new History(await answer.text());
}

function said(error) {
  if (error instanceof WebAssembly.RuntimeError) return { status: 0 };
  if (error instanceof Error && error.code) {
    const { code, field, message, params } = error;
    return { status: 422, problem: { type: code, title: message, status: 422, detail: message, errors: [{ field, code, message, params }] } };
  }
  return { status: error.status ?? 0, problem: error.problem ?? null };
}

self.onmessage = async (event) => {
  const { id, load: address, ask } = JSON.parse(event.data);
  try {
    await ready;
    if (address === undefined) {
      self.postMessage(`{"id":${id},"report":${history.replay(JSON.stringify(ask))}}`);
      return;
    }
    newest = id;
    const loaded = await load(address);
    // What was asked for later may have come sooner.
    if (newest !== id) return loaded.free();
    history?.free();
    history = loaded;
    self.postMessage(`{"id":${id},"report":null}`);
  } catch (error) {
    self.postMessage(JSON.stringify({ id, error: said(error) }));
  }
};
