// Options of the call in suggested commands.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REMEDIES } from '@berth/sdk/remedies';
import { clientChapters } from '../../src/chapters.ts';
import { machineChapters } from '../../src/machine/verbs.ts';
import { hintCompleter } from '../../src/program/hints.ts';
import { buildProgram } from '../../src/program/program.ts';
import { berth } from '../world/berth.ts';

const program = buildProgram(
  { chapters: [...clientChapters, ...machineChapters], version: '0', streams: process, environment: {} },
  () => Promise.resolve(),
);
const URL = 'https://berth.example.com';

for (const [what, flags, text, completed] of [
  [
    'a hint repeats --profile and --url of the call',
    { profile: 'work', url: URL },
    'delete it with berth sandbox rm sbx_1',
    `delete it with berth sandbox rm --profile work --url ${URL} sbx_1`,
  ],
  [
    'every command of a hint gets the options',
    { profile: 'work' },
    'berth agent ls --sandbox sbx_1 lists them; berth agent start sbx_1 starts one, berth exec sbx_1 -- ls',
    'berth agent ls --profile work --sandbox sbx_1 lists them; berth agent start --profile work sbx_1 starts one, ' +
      'berth exec --profile work sbx_1 -- ls',
  ],
  [
    'an option that the hint has stays as it is',
    { profile: 'work', url: URL },
    'sign in with berth login --profile NAME',
    `sign in with berth login --url ${URL} --profile NAME`,
  ],
  [
    'a value with special characters is quoted',
    { url: `${URL}/$&'x` },
    'berth login',
    String.raw`berth login --url 'https://berth.example.com/$&'\''x'`,
  ],
  [
    'commands without these options, and other words, stay as they are',
    { profile: 'work', url: URL },
    'berth: use berth profile use staging, ./berth keys create, berth sandbox, or berth nothing',
    'berth: use berth profile use staging, ./berth keys create, berth sandbox, or berth nothing',
  ],
  ['a call without options changes no hint', {}, 'berth sandbox rm sbx_1', 'berth sandbox rm sbx_1'],
] as const)
  test(what, () => assert.equal(hintCompleter(program, flags)(text), completed));

test('the remedy of a failure names the service of the call', async () => {
  const { code, stderr } = await berth(['sandbox', 'ls', '--url', URL, '--profile', 'work']);
  assert.equal(code, 4);
  assert.ok(stderr.includes(`sign in with berth login --profile work --url ${URL}, or set BERTH_API_KEY`), stderr);
});

test('every command in the remedy of an error exists', () => {
  for (const [code, remedy] of Object.entries(REMEDIES)) {
    for (const [, words = ''] of remedy.matchAll(/\bberth((?: [a-z-]+)+)/g)) {
      const [first, second] = words.trim().split(' ');
      const command = program.commands.find((known) => known.name() === first);
      assert.ok(command !== undefined, `${code}: berth ${first}`);
      const isGroup = command.commands.length > 0;
      assert.ok(!isGroup || command.commands.some((known) => known.name() === second), `${code}: berth${words}`);
    }
  }
});
