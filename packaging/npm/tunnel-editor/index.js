// The editor in a shadow tree of its own: neither do the page's styles reach it nor its own the page.
import load, { mount } from './exitpilot_tunnel_editor.js';
import { css } from './styles.js';

let opening;

/** Loads the module: from beside this file, or from `source`. Called again it loads nothing again. */
export default function init(source) {
  opening ??= load(source === undefined ? undefined : { module_or_path: source }).catch((cause) => {
    opening = undefined;
    throw new Error(`the tunnel editor could not be loaded: ${cause}`, { cause });
  });
  return opening.then(() => undefined);
}

const WORDS = {
  zh: { loading: '正在载入…', failed: '无法载入隧道编辑器。', retry: '重试' },
  en: { loading: 'Loading…', failed: 'The tunnel editor could not be loaded.', retry: 'Try again' },
};

// What the page says of its own text must not reach into the editor.
const HOST = ':host{all:initial;display:block}:host([hidden]){display:none}\n';

let sheet;
function styles() {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(HOST + css);
  }
  return sheet;
}

/** The language for a BCP 47 tag, or the browser's. */
const tagOf = (language) => language || navigator.language || 'en';

/** How requests reach the panel: everything is asked for anew with each, so that tokens may change. */
function way(options) {
  return async (path, request) => {
    const { apiBase, token, fetch: given } = options();
    const headers = new Headers(request.headers);
    const bearer = typeof token === 'function' ? await token() : token;
    if (bearer) headers.set('authorization', `Bearer ${bearer}`);
    const address = (apiBase ?? '/api/v1').replace(/\/+$/, '') + path;
    return (given ?? globalThis.fetch)(address, { ...request, headers });
  };
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Shows the editor in a shadow tree; `options` is asked when something is needed. */
function show(root, options, tell) {
  const place = element('div');
  root.adoptedStyleSheets = [styles()];
  root.replaceChildren(place);
  let language = tagOf(options().language);
  let closed = false;
  let editor;

  async function open() {
    const words = WORDS[/^zh/i.test(language) ? 'zh' : 'en'];
    const waiting = element('div', { className: 'state loading', role: 'status' }, element('span', { className: 'spinner' }), words.loading);
    place.replaceChildren(waiting);
    try {
      await init();
    } catch (error) {
      if (closed) return;
      const again = element('button', { type: 'button', className: 'button', onclick: open }, words.retry);
      const failed = element('div', { className: 'state problem', role: 'alert' }, element('p', { className: 'state-title' }, words.failed), again);
      place.replaceChildren(failed);
      console.error(error);
      return;
    }
    if (closed) return;
    place.replaceChildren();
    const { tunnelId } = options();
    const told = (what) => (tunnel) => {
      if (!closed) tell(what, tunnel);
    };
    editor = mount(place, { fetch: way(options), language, tunnelId, onSaved: told('saved'), onCancel: told('cancel') });
  }

  open();
  return {
    close() {
      if (closed) return;
      closed = true;
      editor?.unmount();
      editor = undefined;
      root.replaceChildren();
    },
    setLanguage(tag) {
      language = tagOf(tag);
      editor?.setLanguage(language);
    },
    refresh() {
      editor?.refresh();
    },
  };
}

function setTheme(host, theme) {
  if (theme === 'light' || theme === 'dark') host.dataset.theme = theme;
  else delete host.dataset.theme;
}

/** Shows the editor at the end of an element. */
export function mountTunnelEditor(parent, options = {}) {
  if (!(parent instanceof Element)) throw new TypeError('mountTunnelEditor: the first argument must be an element');
  const host = parent.appendChild(document.createElement('div'));
  setTheme(host, options.theme);
  const shown = show(
    host.attachShadow({ mode: 'open' }),
    () => options,
    (what, tunnel) => (what === 'saved' ? options.onSaved?.(tunnel) : options.onCancel?.()),
  );
  return {
    unmount() {
      shown.close();
      host.remove();
    },
    setLanguage: shown.setLanguage,
    setTheme: (theme) => setTheme(host, theme),
    refresh: shown.refresh,
  };
}

/** `<exitpilot-tunnel-editor api-base token tunnel-id language theme>`, with the events `saved` and `cancel`. */
export class TunnelEditorElement extends (globalThis.HTMLElement ?? class {}) {
  static observedAttributes = ['tunnel-id', 'language', 'theme'];

  /** Asked instead of the browser's own. */
  fetch;
  #shown;

  connectedCallback() {
    this.#open();
  }

  disconnectedCallback() {
    this.#shown?.close();
    this.#shown = undefined;
  }

  attributeChangedCallback(name, before, now) {
    if (name === 'theme') setTheme(this, now);
    if (!this.#shown || before === now) return;
    if (name === 'language') this.#shown.setLanguage(now);
    if (name === 'tunnel-id') this.#open();
  }

  /** Fetches the nodes and the other tunnels again. */
  refresh() {
    this.#shown?.refresh();
  }

  #open() {
    this.#shown?.close();
    const options = () => {
      const id = this.getAttribute('tunnel-id');
      return {
        apiBase: this.getAttribute('api-base') ?? undefined,
        token: this.getAttribute('token') ?? undefined,
        fetch: this.fetch,
        language: this.getAttribute('language'),
        tunnelId: id ? Number(id) : undefined,
      };
    };
    const tell = (what, tunnel) =>
      this.dispatchEvent(new CustomEvent(what, { bubbles: true, detail: what === 'saved' ? { tunnel } : undefined }));
    this.#shown = show(this.shadowRoot ?? this.attachShadow({ mode: 'open' }), options, tell);
  }
}

if (globalThis.customElements && !customElements.get('exitpilot-tunnel-editor')) {
  customElements.define('exitpilot-tunnel-editor', TunnelEditorElement);
}
