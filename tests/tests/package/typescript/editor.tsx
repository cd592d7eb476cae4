// What a page may write around the editor, and what not.
import init, { type SavedTunnel, type TunnelEditorOptions, mountTunnelEditor } from '@exitpilot/tunnel-editor';
import { TunnelEditor } from './TunnelEditor.js';

await init('/assets/exitpilot_tunnel_editor_bg.wasm');
const editor = mountTunnelEditor(document.body, {
  apiBase: '/api/v1',
  token: async () => 'token',
  tunnelId: 42,
  language: 'zh-CN',
  onSaved: (tunnel) => console.log(tunnel.version + 1, tunnel.exit?.nodes[0]?.connectIp?.length),
});
editor.setTheme('dark');
editor.unmount();

const element = document.createElement('exitpilot-tunnel-editor');
element.fetch = (address, request) => fetch(address, request);
element.addEventListener('saved', (event) => console.log((event as CustomEvent<{ tunnel: SavedTunnel }>).detail.tunnel.name));
element.refresh();

export const component = <TunnelEditor tunnelId={1} onCancel={() => undefined} />;

// @ts-expect-error a tunnel is named by its number
export const named: TunnelEditorOptions = { tunnelId: '42' };
// @ts-expect-error there is no such option
export const unknown: TunnelEditorOptions = { onSave: () => undefined };
// @ts-expect-error an element is needed
mountTunnelEditor('#place');
// @ts-expect-error no such theme
editor.setTheme('black');
