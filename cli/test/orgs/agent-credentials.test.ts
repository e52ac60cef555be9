// `berth project agent-credentials` against the real service.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';
import { startApi, type TestApi } from '../../../api/test/world/api.ts';
import { berth, cleanEnvironment, MAIN, newHome, type Ended } from '../world/berth.ts';
import { sessionOf, writeProfiles } from '../world/profile.ts';

const KEY = 'sk-of-the-test-0123456789';

let api: TestApi;
let home: string;
before(async () => {
  api = await startApi({ durable: false });
  const { token } = await api.makeSession({ role: 'owner' });
  home = newHome();
  const { url, orgId } = api;
  writeProfiles(home, { default: { url, session: sessionOf(token, 'unused', 3_600), orgId } });
});
after(async () => await api.close());

const run = async (args: readonly string[], stdin = ''): Promise<Ended> =>
  await berth(['project', 'agent-credentials', ...args], { env: { HOME: home }, stdin });

test('a key comes from stdin or a hidden prompt, is listed without its text, and is deleted', async () => {
  assert.deepEqual(await run(['set', 'agent_two'], `${KEY}\n`), {
    code: 0,
    stdout: 'stored the key of agent_two\n',
    stderr: '',
  });
  const { stdout } = await run(['ls']);
  assert.match(
    stdout,
    /^AGENT {6}KEY {5}ENDPOINT +UPDATED\nagent_one {2}none {4}- +-\nagent_two {2}stored {2}https:\S+ +\d+ s ago\n$/,
  );
  const screen = new PseudoTerminal(
    process.execPath,
    [MAIN, 'project', 'agent-credentials', 'set', 'agent_one'],
    cleanEnvironment({ HOME: home }),
  );
  await screen.shows('key of the model provider (not shown): ');
  screen.type(`${KEY}\r`);
  assert.equal(await screen.ended(), 0);
  assert.ok(!screen.text.includes(KEY), screen.text);
  const json = await run(['ls', 'agent_one', '--json']);
  const { agentCredentials } = JSON.parse(json.stdout) as { agentCredentials: { agent: string; stored: boolean }[] };
  assert.deepEqual(
    agentCredentials.map(({ agent, stored }) => [agent, stored]),
    [['agent_one', true]],
  );
  assert.equal((await run(['rm', 'agent_two'])).stdout, 'deleted the key of agent_two\n');
  assert.match((await run(['ls', 'agent_two'])).stdout, /\nagent_two {2}none /);
});

test('wrong words, agents and endpoints are refused, without the key in the output', async () => {
  for (const [words, code, message] of [
    [['put', 'agent_two'], 2, /'put' is invalid.*Allowed choices are set, rm, ls/],
    [['set'], 2, /no agent given; use one of: agent_one, agent_two/],
    [['rm', 'agent_two', '--endpoint', 'https://x.example'], 2, /--endpoint requires the action set/],
    [['set', 'agent_nine'], 1, /agent_not_found/],
    [['set', '../agent_two'], 1, /agent_not_found/],
    [['set', 'agent_two', '--endpoint', 'https://x.example'], 2, /--endpoint must be one of/],
  ] as const) {
    const { code: got, stdout, stderr } = await run(words, KEY);
    assert.deepEqual([got, stdout], [code, ''], stderr);
    assert.match(stderr, message);
    assert.ok(!stderr.includes(KEY));
  }
  const byKey = await berth(['project', 'agent-credentials', 'ls'], {
    env: { HOME: home, BERTH_URL: api.url, BERTH_API_KEY: api.token },
  });
  assert.deepEqual([byKey.code, /sign in as a user with berth login/.test(byKey.stderr)], [1, true], byKey.stderr);
});
