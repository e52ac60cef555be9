// `berth sandbox env` against the real service.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';
import { startApi, type TestApi } from '../../../api/test/world/api.ts';
import { berth, cleanEnvironment, MAIN, newHome, type Ended } from '../world/berth.ts';
import { writeProfiles } from '../world/profile.ts';

const VALUE = 'postgres://ada:lantern@db';
const MULTILINE = 'two\nlines = "of" text';

let api: TestApi;
let home: string;
let id: string;
before(async () => {
  api = await startApi({ durable: false });
  home = newHome();
  writeProfiles(home, { default: { url: api.url, apiKey: api.token, orgId: api.orgId } });
  ({ id } = await api.makeSandbox('ready'));
});
after(async () => await api.close());

const run = async (args: readonly string[], stdin = ''): Promise<Ended> =>
  await berth(['sandbox', 'env', ...args], { env: { HOME: home }, stdin });

async function seen(): Promise<string[]> {
  let env: string[] = [];
  api.front.exec = (request) => {
    env = (request as { env?: string[] }).env ?? [];
    return Promise.resolve({ exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false });
  };
  await api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: 'true' } });
  return env.toSorted();
}

test('variables come from arguments, stdin, a prompt or a file, and are listed without values', async () => {
  assert.deepEqual(await run(['set', id, 'MODE=a=b', 'EMPTY=']), {
    code: 0,
    stdout: `set 2 variables of ${id}\n`,
    stderr: '',
  });
  assert.equal((await run(['set', id, 'URL'], `${VALUE}\n`)).stdout, `set 1 variable of ${id}\n`);
  assert.deepEqual(await seen(), ['EMPTY=', 'MODE=a=b', `URL=${VALUE}`]);
  const { stdout } = await run(['ls', id]);
  assert.match(stdout, /^NAME +UPDATED\nEMPTY +\d+ s ago\nMODE +\d+ s ago\nURL +\d+ s ago\n$/);

  const screen = new PseudoTerminal(
    process.execPath,
    [MAIN, 'sandbox', 'env', 'set', id, 'URL'],
    cleanEnvironment({ HOME: home }),
  );
  await screen.shows('value of URL (not shown): ');
  screen.type('typed-lantern\r');
  assert.equal(await screen.ended(), 0);
  assert.ok(!screen.text.includes('typed-lantern'), screen.text);
  assert.ok((await seen()).includes('URL=typed-lantern'));

  assert.equal((await run(['unset', id, 'URL', 'EMPTY'])).stdout, `unset 2 variables of ${id}\n`);
  const file = join(home, 'variables.env');
  writeFileSync(file, `# a comment\nexport PORT=80\nTEXT='${MULTILINE}'\nMODE=file\n`);
  assert.equal((await run(['set', id, '--from-file', file, 'MODE=argument'])).code, 0);
  assert.deepEqual(await seen(), ['MODE=argument', 'PORT=80', `TEXT=${MULTILINE}`]);
  const replaced = await run(['set', id, '--from-file', '-', '--replace', '--json'], 'ONLY=this\n');
  const { variables } = JSON.parse(replaced.stdout) as { variables: { name: string }[] };
  assert.deepEqual(
    variables.map(({ name }) => name),
    ['ONLY'],
  );
});

test('wrong words, names and files are refused without a value in the output', async () => {
  const file = join(home, 'none.env');
  writeFileSync(file, 'lantern\n');
  for (const [words, code, message] of [
    [['put', id], 2, /Allowed choices are set, unset, ls/],
    [['set', id], 2, /no variable given; pass NAME=VALUE, NAME or --from-file/],
    [['unset', id], 2, /no variable given; name those to unset/],
    [['unset', id, 'A=lantern'], 2, /unset takes names/],
    [['ls', id, 'A'], 2, /ls takes no variables/],
    [['ls', id, '--replace'], 2, /require the action set/],
    [['set', id, 'A', 'B'], 2, /stdin has the value of one variable only/],
    [['set', id, 'A'], 2, /stdin is empty; expected the value of A/],
    [['set', id, '--from-file', file], 2, /has no line NAME=VALUE/],
    [['set', id, '--from-file', join(home, 'missing')], 1, /cannot read .*missing/],
    [['set', id, 'A-B=lantern'], 2, /\[variables\] A-B .*letters, digits and _/],
    [['set', id, 'HOME=/lantern'], 2, /\[variables\] HOME .*set by the service/],
    [['set', 'one', 'A=lantern'], 1, /no sandbox of the org .* has the name 'one'/],
  ] as [string[], number, RegExp][]) {
    const ended = await run(words);
    assert.equal(ended.code, code, JSON.stringify(ended));
    assert.match(ended.stderr, message);
    if (!words.includes('none.env')) assert.ok(!`${ended.stdout}${ended.stderr}`.includes('lantern'), ended.stderr);
  }
});
