// The sandbox of a command; service/find-sandbox.ts finds it.
import type { ArgumentSpec } from './command-spec.ts';

export const SANDBOX: ArgumentSpec = { name: '<sandbox>', about: 'sandbox: id, name or unique start of the id' };
export const OPTIONAL_SANDBOXES: ArgumentSpec = {
  name: '[sandboxes...]',
  about: 'sandboxes: ids, names or unique starts of ids',
};
