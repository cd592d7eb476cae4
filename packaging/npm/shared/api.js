// Between callers, who may pass anything, and the module, which takes JSON.

let ready = false;

/** The module can be called from now on. */
export function opened() {
  ready = true;
}

/** An error as all errors of this package are. */
export function fail(code, field, message, cause) {
  const error = cause === undefined ? new Error(message) : new Error(message, { cause });
  return Object.assign(error, { code, field, params: {} });
}

/** How large arguments may be: values in all, characters in all. */
export const USUAL = { values: 500_000, characters: 4 << 20 };
/** A week of a tunnel with four exits has three million values. */
export const HISTORY = { values: 50_000_000, characters: 64 << 20 };

const DEEPEST = 64;

class Copier {
  constructor(limits) {
    this.values = limits.values;
    this.characters = limits.characters;
    this.path = [];
  }

  refuse(code, depth, message) {
    return fail(code, written(this.path, depth), message);
  }

  text(text, depth) {
    this.characters -= text.length;
    if (this.characters < 0) throw this.refuse('too_large', depth, 'this is too much text');
    return text;
  }

  room(count, depth) {
    this.values -= count;
    if (!(this.values >= 0)) throw this.refuse('too_large', depth, 'these are too many values');
  }

  copy(value, depth) {
    switch (typeof value) {
      case 'string':
        return this.text(value, depth);
      case 'boolean':
        return value;
      case 'number':
        if (!Number.isFinite(value)) throw this.refuse('invalid_type', depth, `${value} is no number here`);
        return value;
      case 'object':
        if (value === null) return null;
        break;
      default:
        throw this.refuse('invalid_type', depth, `${typeof value} is no value here`);
    }
    if (depth >= DEEPEST) throw this.refuse('too_deep', depth, 'this is nested too deeply, or within itself');
    if (Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) {
      const length = value.length;
      this.room(length, depth);
      const list = [];
      for (let i = 0; i < length; i++) {
        this.path[depth] = i;
        list.push(this.copy(value[i], depth + 1));
      }
      return list;
    }
    const keys = Object.keys(value);
    this.room(keys.length, depth);
    // Without a prototype, `__proto__` is a key like any other.
    const object = Object.create(null);
    for (const key of keys) {
      this.path[depth] = key;
      const member = value[key];
      if (member !== undefined) object[this.text(key, depth + 1)] = this.copy(member, depth + 1);
    }
    return object;
  }
}

function written(path, depth) {
  let text = '';
  for (const part of path.slice(0, depth)) {
    text += typeof part === 'number' ? `[${part}]` : text === '' ? part : `.${part}`;
  }
  return text.slice(0, 200);
}

/**
 * JSON of a value that may be anything: what JSON cannot say is an error with its place, and so is what throws when it
 * is looked at. Everything is copied first, so that nothing of the caller's runs while the module does.
 */
export function json(value, limits = USUAL) {
  const copier = new Copier(limits);
  try {
    return JSON.stringify(copier.copy(value, 0));
  } catch (error) {
    if (isOurs(error)) throw error;
    throw fail('unreadable', written(copier.path, 1), 'the value could not be read', error);
  }
}

function isOurs(error) {
  try {
    return error instanceof Error && typeof error.code === 'string' && typeof error.field === 'string';
  } catch {
    return false;
  }
}

/** Longer texts in errors are cut: they quote what was given, which may be megabytes. */
const LONGEST = 1000;

function shortened(error) {
  const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
  error.message = cut(error.message);
  error.field = cut(error.field);
  for (const [name, value] of Object.entries(error.params)) error.params[name] = cut(value);
  return error;
}

/** Runs a function of the module; what it throws is one of our errors. */
export function inside(run) {
  if (!ready) throw fail('not_initialised', '', 'call init() first and wait for it');
  try {
    return run();
  } catch (error) {
    if (isOurs(error)) throw shortened(error);
    throw fail('internal', '', 'the module failed', error);
  }
}

/** Calls a function of the module with its arguments by name. */
export function call(run, args) {
  const text = json(args);
  return JSON.parse(inside(() => run(text)));
}
