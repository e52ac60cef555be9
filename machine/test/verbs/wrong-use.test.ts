import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runVerb } from './berth-program.ts';

const WRONG: [string, string[], RegExp][] = [
  ['an unknown verb', ['upp'], /unknown command 'upp'\n\(Did you mean up\?\)/],
  ['an unknown flag', ['up', '--prot', '1'], /unknown option '--prot'\n\(Did you mean --port\?\)/],
  ['a flag without its value', ['up', '--port'], /option '--port <port>' argument missing/],
  ['a wrong value', ['up', '--port', 'http'], /berth: --port: 'http' is not a port/],
  ['a word too many', ['down', 'now'], /too many arguments/],
  ['an unknown benchmark', ['bench', 'nothing-of-this-name'], /there is no benchmark 'nothing-of-this-name'\n {2}known: /],
  ['a filter that no test has', ['test', 'nothing-of-this-name'], /no test file's path has 'nothing-of-this-name' in it/],
  ['a word too many after owner-link', ['owner-link', 'now'], /too many arguments/],
  ['keys without its verb', ['keys'], /Usage: berth keys/],
  ['plans without its verb', ['plans'], /Usage: berth plans/],
  ['a plan that is not named', ['plans', 'set'], /berth: --plan is missing/],
];

for (const [what, args, message] of WRONG) {
  test(`${what} is a clear message and exit code 1`, async () => {
    const { code, stdout, stderr } = await runVerb(...args);
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, / at .*\.ts:/);
  });
}
