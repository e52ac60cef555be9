// `berth shell` in a pseudo-terminal, on a real VM: size, keys, characters, exit codes, ends.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PseudoTerminal } from '../../os/test/pseudo-terminal.ts';
import { awakeSandbox, destroySandbox, exec, sleepSandbox, wakeSandbox } from '../world/client.ts';
import { activityOf, queryDatabase } from '../world/database.ts';
import { createKey, startInstance, type Instance } from '../world/instance.ts';
import { BERTH } from '../world/ssh-client.ts';
import { until } from '../../os/test/until.ts';

let berth: Instance;
let id: string;
const open = new Set<PseudoTerminal>();

before(async () => {
  berth = await startInstance('terminal');
  ({ id } = await awakeSandbox(berth));
});

after(async () => {
  open.forEach((terminal) => terminal.hangUp());
  await berth?.end();
});

/** A shell in a terminal, at its prompt. */
async function shell({ token = berth.token, sandboxId = id } = {}): Promise<PseudoTerminal> {
  const { PATH, HOME } = process.env;
  const terminal = new PseudoTerminal(BERTH, ['shell', sandboxId], {
    PATH,
    HOME,
    BERTH_URL: berth.url,
    BERTH_API_KEY: token,
  });
  open.add(terminal);
  await terminal.shows(/\$ $/);
  return terminal;
}

/**
 * Types a line and returns its output, up to a mark with its exit code. Returns at the next prompt:
 * input typed earlier would be echoed twice.
 */
async function run(terminal: PseudoTerminal, line: string): Promise<{ printed: string; code: string | undefined }> {
  const from = terminal.text.length;
  // The mark differs from the typed text, and so from its echo.
  terminal.type(`${line}; echo "<""done $?>"\r`);
  const [, printed = '', code] = await terminal.shows(/\r\n([^]*)<done (\d+)>\r\n[^]*\$ $/, from);
  return { printed: plain(printed), code };
}

/** Removes carriage returns, and the sequences that toggle bracketed paste. */
function plain(shown: string): string {
  return ['\r', '\u001b[?2004h', '\u001b[?2004l'].reduce((text, control) => text.replaceAll(control, ''), shown);
}

async function output(command: string, sandboxId = id): Promise<string> {
  return (await exec(berth, sandboxId, command)).stdout.trim();
}

test('the sandbox user’s shell runs in a terminal of the local size, which follows a resize', async () => {
  const terminal = await shell();
  await terminal.resize(33, 101);
  await until('the size is the new one', async () =>
    (await run(terminal, 'stty size')).printed === '33 101\n' ? true : null,
  );
  assert.match((await run(terminal, 'id -un; pwd; tty')).printed, /^berth\n\/code\n\/dev\/pts\/\d+\n$/);
  terminal.type('exit\r');
  assert.equal(await terminal.ended(), 0);
  const kinds = (await activityOf(berth.dataFolder, id)).map(
    ({ kind, details }) => `${kind} ${JSON.stringify(details)}`,
  );
  assert.ok(kinds.includes('sandbox_connected {"terminal":true}'), kinds.join('\n'));
});

test('Ctrl-C ends a program and not the shell; shell returns the exit code of the shell', async () => {
  const terminal = await shell();
  // Printed by the program once it is in the foreground.
  terminal.type(`sh -c 'echo be""gun; exec sleep 100000'\r`);
  await terminal.shows('begun\r\n');
  const from = terminal.text.length;
  terminal.type('\x03');
  await terminal.shows(/\$ $/, from);
  assert.equal((await run(terminal, 'echo code $?')).printed, 'code 130\n');
  terminal.type('exit 42\r');
  assert.equal(await terminal.ended(), 42);
});

test('multibyte characters go both ways intact, at once and byte by byte', async () => {
  const terminal = await shell();
  const text = 'grüße, 日本語, 💡';
  for (const byte of Buffer.from(`printf '%s' '${text}' > text`)) terminal.type(Buffer.from([byte]));
  await run(terminal, '');
  assert.equal(await output('cat text'), text);
  await output(`printf '%s\\n' 'さようなら 👋' > other`);
  assert.equal((await run(terminal, 'cat other')).printed, 'さようなら 👋\n');
  terminal.type('\x04');
  assert.equal(await terminal.ended(), 0);
});

test('large output arrives whole, and several terminals stay separate', async () => {
  const [one, two] = [await shell(), await shell()];
  one.type('seq 1 50000; echo "<""all>"\r');
  assert.equal((await run(two, 'echo two')).printed, 'two\n');
  await one.shows('<all>\r\n');
  assert.equal(
    plain(one.text)
      .split('\n')
      .filter((line) => /^\d+$/.test(line)).length,
    50_000,
  );
  for (const terminal of [one, two]) terminal.type('exit\r');
  assert.deepEqual([await one.ended(), await two.ended()], [0, 0]);
});

test('a closed local terminal hangs up the remote programs', async () => {
  const terminal = await shell();
  terminal.type(`(trap 'echo hung up > hup; exit' HUP; echo "<""ready>"; while :; do sleep 0.1; done) & sleep 4242\r`);
  await terminal.shows('<ready>');
  terminal.hangUp();
  await until('the programs are gone', async () => {
    const said = await output('cat hup; pgrep -f "^sleep 4242" || echo none');
    return said === 'hung up\nnone' ? true : null;
  });
});

test('a terminal closes when its key is revoked', async () => {
  const token = await createKey(berth, 'revoked');
  const terminal = await shell({ token });
  terminal.type('sleep 5353\r');
  await queryDatabase(berth.dataFolder, `update api_key set revoked_at = now() where name = 'revoked'`);
  assert.equal(await terminal.ended(), 1);
  assert.match(
    terminal.text,
    /berth: the terminal was closed: the API key was revoked or has expired \(unauthenticated\)\r\n {2}sign in with berth login; .*\r\n$/,
  );
  await until('its program is gone', async () =>
    (await output('pgrep -f "^sleep 5353" || echo none')) === 'none' ? true : null,
  );
});

test('a terminal closes when its sandbox sleeps or is destroyed; a new one opens after a wake', async () => {
  const sandbox = await awakeSandbox(berth);
  const sandboxId = sandbox.id;
  const slept = await shell({ sandboxId });
  await run(slept, 'echo before > /code/file');
  await sleepSandbox(berth, sandboxId);
  assert.equal(await slept.ended(), 1);
  assert.match(
    slept.text,
    /berth: the terminal was closed: the sandbox is no longer awake \(sandbox_state_conflict\)\r\n$/,
  );
  await wakeSandbox(berth, sandboxId);
  const woken = await shell({ sandboxId });
  assert.equal((await run(woken, 'cat /code/file')).printed, 'before\n');
  await destroySandbox(berth, sandboxId);
  assert.equal(await woken.ended(), 1);
  assert.match(woken.text, /berth: the terminal was closed: /);
});
