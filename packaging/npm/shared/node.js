// In Node.js the module is loaded from the package at once, so that nothing has to be waited for.
import { readFileSync } from 'node:fs';
import { opened } from './api.js';
import { initSync } from './exitpilot_shared.js';

initSync({ module: readFileSync(new URL('./exitpilot_shared_bg.wasm', import.meta.url)) });
opened();

/** There already; here so that the same code runs in browsers. */
export default async function init() {}

export * from './functions.js';
