// `berth agent sign-in` in a terminal, against a fake API.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';
import { ApiServer } from '../world/api-server.ts';
import { berth, MAIN } from '../world/berth.ts';

let api: ApiServer;
let folder: string;
before(async () => {
  api = await ApiServer.start();
  folder = mkdtempSync(join(tmpdir(), 'berth-sign-in-'));
});
after(() => {
  api.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the sign-in of a sandbox with the agent; the terminal exits with the code. */
async function signIn(agent: string, exit: number): Promise<{ screen: PseudoTerminal; command: string }> {
  const { promise, resolve } = Promise.withResolvers<string>();
  api.json = () => ({ sandbox: { id: 'sbx_abcabcabcabcabcabcabcabc', agent, status: 'ready' } });
  api.answer = (socket, { url = '' }) => {
    resolve(new URL(url, 'http://api').searchParams.get('command') ?? '');
    socket.send(Buffer.from('open https://example.test in a browser\r\n'));
    socket.send(JSON.stringify({ exit }));
    socket.close(1000);
  };
  const screen = new PseudoTerminal(
    process.execPath,
    [MAIN, 'agent', 'sign-in', 'sbx_abcabcabcabcabcabcabcabc'],
    api.environment,
  );
  const command = agent === 'agent_nine' ? '' : await promise;
  await screen.ended();
  return { screen, command };
}

/** Runs the command with these agents in the PATH; resolves with its output. */
function runHere(command: string, ...programs: string[]): string {
  for (const name of programs) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho ${name} "$@"\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8', env: { PATH: `${folder}:/usr/bin:/bin` } });
}

test("each agent's own sign-in without a browser runs in a terminal of the sandbox", async () => {
  for (const [agent, program, words] of [
    ['agent_one', 'codex', 'login --device-auth'],
    ['agent_two', 'claude', 'auth login'],
  ] as const) {
    const { screen, command } = await signIn(agent, 0);
    assert.match(screen.text, /open https:\/\/example\.test in a browser\r\n/);
    assert.match(screen.text, /signed in; start a session with berth agent start sbx_abcabcabcabcabcabcabcabc\r\n$/);
    assert.equal(runHere(command, program), `${program} ${words}\n`);
  }
});

test('a failed sign-in, a missing agent and an unknown one are failures with a remedy', async () => {
  for (const [agent, exit, said] of [
    ['agent_one', 1, /berth: the sign-in ended with exit code 1\r\n$/],
    ['agent_two', 127, /berth: the sandbox's template does not have agent_two\r\n {2}create a sandbox of a newer/],
    [
      'agent_nine',
      0,
      /does not know the sign-in of agent_nine\r\n {2}run it in berth shell sbx_abcabcabcabcabcabcabcabc\r\n$/,
    ],
  ] as const) {
    const { screen } = await signIn(agent, exit);
    assert.match(screen.text, said);
    assert.equal(await screen.ended(), 1);
  }
});

test('without a terminal sign-in names the model key instead', async () => {
  const { code, stderr } = await berth(['agent', 'sign-in', 'sbx_abcabcabcabcabcabcabcabc'], { env: api.environment });
  assert.equal(code, 2);
  assert.match(stderr, /requires a terminal.*\n {2}to store a model key without a terminal: berth project/);
});
