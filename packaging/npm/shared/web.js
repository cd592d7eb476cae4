// In a browser the module is fetched; `init` has to be waited for.
import { fail, opened } from './api.js';
import load from './exitpilot_shared.js';

let opening;

/** Loads the module: from beside this file, or from `source`. Called again it loads nothing again. */
export default function init(source) {
  opening ??= load(source === undefined ? undefined : { module_or_path: source }).then(opened, (cause) => {
    opening = undefined;
    throw fail('not_loaded', 'source', `the WebAssembly module could not be loaded: ${cause}`, cause);
  });
  return opening;
}

export * from './functions.js';
