// What the package offers. Types and words are in index.d.ts.
import { HISTORY, call, fail, inside, json } from './api.js';
import * as raw from './exitpilot_shared.js';

const choices = () => JSON.parse(inside(() => raw.choices()));

export const strategies = () => choices().strategies;
export const protocols = () => choices().protocols;
export const defaultSettings = () => choices().settings;
export const settingRanges = () => choices().ranges;

export const describeStrategy = (strategy) => call(raw.describeStrategy, { strategy });
export const parsePolicy = (policy) => call(raw.parsePolicy, { policy });
export const validateTunnel = (tunnel, world) => call(raw.validateTunnel, { tunnel, world });
export const validateSettings = (settings) => call(raw.validateSettings, { settings });

export const leg = (measured) => call(raw.leg, { measured });
export const score = (legA, legB, lossPenaltyMsPerPercent) =>
  call(raw.score, { legA, legB, lossPenaltyMsPerPercent });
export const rank = (candidates, lossPenaltyMsPerPercent) =>
  call(raw.rank, { candidates, lossPenaltyMsPerPercent });

function replayed(history, args) {
  const rest = json(args);
  let text = history;
  if (typeof history !== 'string') {
    text = history === undefined ? 'null' : named('history', () => json(history, HISTORY));
  } else if (history.length > HISTORY.characters) {
    throw fail('too_large', 'history', 'this is too much text');
  }
  return JSON.parse(inside(() => raw.replay(text, rest)));
}

function named(argument, run) {
  try {
    return run();
  } catch (error) {
    const { field } = error;
    error.field = field === '' ? argument : field.startsWith('[') ? argument + field : `${argument}.${field}`;
    throw error;
  }
}

export const replay = (history, settings, policies) => replayed(history, { settings, policies });
export const suggestSettings = (history, settings) =>
  replayed(history, { settings, suggest: true }).suggestion;

export class DecisionMachine {
  #raw;

  constructor(settings, exits, applied) {
    const text = json({ settings, exits, applied });
    this.#raw = inside(() => new raw.Machine(text));
  }

  evaluate(round, nowMs) {
    return DecisionMachine.#call(this, 'evaluate', { round, nowMs });
  }

  accepted(order, nowMs) {
    DecisionMachine.#call(this, 'accepted', { order, nowMs });
  }

  refused(exit, error, nowMs) {
    DecisionMachine.#call(this, 'refused', { exit, error, nowMs });
  }

  applied() {
    return DecisionMachine.#call(this, 'applied', {});
  }

  free() {
    const machine = DecisionMachine.#of(this);
    this.#raw = undefined;
    inside(() => machine.free());
  }

  // Any object may be given as `this`.
  static #of(self) {
    if (typeof self !== 'object' || self === null || !(#raw in self)) {
      throw fail('invalid_type', 'this', 'this is no DecisionMachine');
    }
    if (self.#raw === undefined) throw fail('freed', 'this', 'this machine was freed');
    return self.#raw;
  }

  static #call(self, name, args) {
    const text = json(args);
    const machine = DecisionMachine.#of(self);
    return JSON.parse(inside(() => machine[name](text)));
  }
}
