import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runVerb } from './berth-program.ts';

/**
 * Case, arguments, message, and exit code: 2 for errors of the command line, 1 for errors of a
 * verb.
 */
const WRONG: [string, string[], RegExp, number][] = [
  ['an unknown verb', ['upp'], /unknown command 'upp'\n\(Did you mean up\?\)/, 2],
  ['an unknown flag', ['up', '--prot', '1'], /unknown option '--prot'\n\(Did you mean --port\?\)/, 2],
  ['a flag without its value', ['up', '--port'], /option '--port <port>' argument missing/, 2],
  ['a wrong value', ['up', '--port', 'http'], /berth: --port: 'http' is not a port/, 1],
  ['a word too many', ['down', 'now'], /too many arguments/, 2],
  [
    'an unknown benchmark',
    ['bench', 'nothing-of-this-name'],
    /there is no benchmark 'nothing-of-this-name'\n {2}known: /,
    1,
  ],
  [
    'a filter that no test has',
    ['test', 'nothing-of-this-name'],
    /no test file's path has 'nothing-of-this-name' in it/,
    1,
  ],
  ['a word too many after owner-link', ['owner-link', 'now'], /too many arguments/, 2],
  ['keys without its verb', ['keys'], /Usage: berth keys/, 2],
  ['plans without its verb', ['plans'], /Usage: berth plans/, 2],
  [
    'a plan that is not named',
    ['plans', 'set', '--data-dir', '/a b', '--org', "it's"],
    /berth: --plan is missing\n {2}.*: \.\/berth plans set --data-dir '\/a b' --org 'it'\\''s' --plan PLAN\n/,
    1,
  ],
  ['install without a service manager', ['install'], /berth: --systemd is missing/, 1],
  ['an uninstall with a folder', ['uninstall', '--data-dir', '/a'], /unknown option '--data-dir'/, 2],
  ['an org that is not named', ['sso-off', '--data-dir', '/a b'], /sso-off --data-dir '\/a b' --org ORG\n/, 1],
];

for (const [what, args, message, expected] of WRONG) {
  test(`${what} gives a clear message and exit code ${expected}`, async () => {
    const { code, stdout, stderr } = await runVerb(...args);
    assert.equal(code, expected);
    assert.equal(stdout, '');
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, / at .*\.ts:/);
  });
}
