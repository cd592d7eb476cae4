import '../index.js';
import { memory } from './memory.js';

const wanted = new URLSearchParams(location.hash.slice(1));
const said = document.getElementById('said');

const editor = document.createElement('exitpilot-tunnel-editor');
editor.setAttribute('api-base', '/api/v1');
for (const [name, attribute] of [['token', 'token'], ['tunnel', 'tunnel-id'], ['language', 'language']]) {
  if (wanted.has(name)) editor.setAttribute(attribute, wanted.get(name));
}
if (wanted.has('memory')) editor.fetch = memory();
editor.addEventListener('saved', (event) => {
  said.textContent = `saved: ${event.detail.tunnel.name}`;
  editor.remove();
});
editor.addEventListener('cancel', () => {
  said.textContent = 'cancelled';
  editor.remove();
});
document.body.append(editor);
