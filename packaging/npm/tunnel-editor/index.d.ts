/** ExitPilot's tunnel editor for pages of your own. */

/**
 * Loads the module. Whoever shows an editor need not call it: it is loaded then. To be called before that where the
 * module is not beside the script, or to have it early.
 * @param source where the module is: an address, its answer, its bytes, or the compiled module
 */
export default function init(source?: string | object): Promise<void>;

/** A node of a hop or of the exits. */
export interface SavedGroupNode {
  nodeId: number;
  /** Its relay port. */
  port?: number | null;
  /** Address at which the group before dials it. */
  connectIp?: string | null;
}

/** A hop, or the exits. */
export interface SavedGroup {
  strategy: string;
  protocol: string;
  maxFails: number;
  failTimeoutMs: number;
  nodes: SavedGroupNode[];
}

/** A tunnel as the panel has stored it. */
export interface SavedTunnel {
  id: number;
  /** Grows with every change. */
  version: number;
  name: string;
  type: 'tunnel' | 'port';
  enabled: boolean;
  ipPreference: 'auto' | 'v4' | 'v6';
  entry: { nodes: Array<{ nodeId: number }> };
  hops: SavedGroup[];
  /** Absent for `port`. */
  exit?: SavedGroup | null;
}

/** What the editor sends its requests with: what the browser's `fetch` takes and answers. */
export type Fetch = (address: string, request: RequestInit) => Promise<Response>;

/** What an editor is shown with. */
export interface TunnelEditorOptions {
  /** Where the panel's API is; default `/api/v1` of the page's own server. */
  apiBase?: string | undefined;
  /** Sent as bearer token; a function is asked before every request. Without it the browser's cookies are sent. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** Asked instead of the browser's own. */
  fetch?: Fetch | undefined;
  /** The tunnel to edit; absent: a new one. */
  tunnelId?: number | undefined;
  /** `zh-CN` or `en`; default the browser's. All editors of a document speak the one that was set last. */
  language?: string | undefined;
  /** Default: as the system has it. */
  theme?: 'light' | 'dark' | 'system' | undefined;
  /** The tunnel is stored. The editor stays: take it away, if you want to. */
  onSaved?: ((tunnel: SavedTunnel) => void) | undefined;
  /** The button was pressed. The editor stays: take it away, if you want to. */
  onCancel?: (() => void) | undefined;
}

/** An editor that is shown. */
export interface TunnelEditorHandle {
  /** Takes it away. What is on its way to the panel is stored, and no longer told. */
  unmount(): void;
  /** Changes the language; what was typed stays. */
  setLanguage(language: string): void;
  setTheme(theme: 'light' | 'dark' | 'system'): void;
  /** Fetches the nodes and the other tunnels again. */
  refresh(): void;
}

/** Shows the editor at the end of an element. */
export function mountTunnelEditor(element: Element, options?: TunnelEditorOptions): TunnelEditorHandle;

/**
 * `<exitpilot-tunnel-editor api-base token tunnel-id language theme>`. Sends the events `saved`, whose `detail.tunnel` is
 * a {@link SavedTunnel}, and `cancel`.
 */
export class TunnelEditorElement extends HTMLElement {
  /** Asked instead of the browser's own; set it as soon as the element is there. */
  fetch: Fetch | undefined;
  /** Fetches the nodes and the other tunnels again. */
  refresh(): void;
}

declare global {
  interface HTMLElementTagNameMap {
    'exitpilot-tunnel-editor': TunnelEditorElement;
  }
}
