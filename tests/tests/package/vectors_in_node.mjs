// The vectors in Node.js. Writes every answer as a TypeScript literal with its type.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as it from '@exitpilot/shared';
import { run } from './vectors.mjs';

const [folder, seenFile] = process.argv.slice(2);
const names = ['scores', 'legs', 'stories', 'validation'];
const read = (name) => [name, JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'))];
const { count, seen } = run(it, Object.fromEntries(names.map(read)));
const literals = seen.map(([type, value], i) => `const v${i}: ${type} = ${JSON.stringify(value)};`);
writeFileSync(seenFile, `import type * as it from '@exitpilot/shared';\n${literals.join('\n')}\nexport {};\n`);
console.log(`${count} vectors, ${seen.length} values with a declared type`);
