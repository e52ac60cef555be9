// Completion: output of `berth __complete`, and real shells in terminals.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Sandbox } from '@berth/sdk';
import { realWorld, type World } from '../../../sdk/test/worlds.ts';
import { berth, cleanEnvironment, MAIN, newHome } from '../world/berth.ts';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';

const run = promisify(execFile);

let world: World;
let sandbox: Sandbox;
let home: string;
/** Environment with `berth` in PATH, some files, and the service. */
let environment: Record<string, string | undefined>;

before(async () => {
  world = await realWorld();
  sandbox = await world.client().sandboxes.create({ agent: 'agent_one', name: 'the\u001B[31mfirst' });
  home = newHome();
  const bin = join(home, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'berth'), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  await chmod(join(bin, 'berth'), 0o755);
  await mkdir(join(home, 'plans-folder'));
  await writeFile(join(home, 'plans.json'), '{}');
  environment = cleanEnvironment({
    HOME: home,
    PATH: [bin, process.env['PATH']].join(delimiter),
    BERTH_URL: world.url,
    BERTH_API_KEY: world.apiKey,
  });
});
after(() => world.close());

/** Offered values, and the directive for the shell. */
async function offered(
  shell: string,
  words: readonly string[],
  env = environment,
): Promise<{ values: string[]; rest: string }> {
  const { code, stdout, stderr } = await berth(['__complete', shell, ...words], { env });
  assert.deepEqual([code, stderr], [0, '']);
  const lines = stdout.trimEnd().split('\n');
  return { values: lines.slice(0, -1).map((line) => line.split('\t')[0] ?? ''), rest: lines.at(-1) ?? '' };
}

test('completion offers commands with summaries and group commands by either name, never hidden ones', async () => {
  const { stdout } = await berth(['__complete', 'zsh', 'who']);
  assert.match(stdout, /^whoami\tshow the current user, .*\n:\n$/);
  const all = await offered('fish', ['']);
  assert.ok(
    ['sandbox', 'shell', 'up', 'keys', 'completion', 'help'].every((name) => all.values.includes(name)),
    all.values.join(' '),
  );
  assert.ok(!all.values.includes('__complete'));
  assert.deepEqual(await offered('bash', ['sandbox', 'l']), { values: ['ls'], rest: ':' });
  assert.deepEqual(await offered('bash', ['sb', 'l']), { values: ['ls'], rest: ':' });
  assert.deepEqual(await offered('bash', ['help', 'sandbox', 'l']), { values: ['ls'], rest: ':' });
  assert.deepEqual(await offered('bash', ['keys', 'create', '']), { values: [], rest: ':' });
});

test('completion offers options where they are allowed, and their values', async () => {
  assert.deepEqual(await offered('zsh', ['sandbox', 'ls', '--j']), { values: ['--json'], rest: ':' });
  assert.deepEqual((await offered('zsh', ['tunnel', 'sbx_a', '--p'])).values.sort(), [
    '--port',
    '--profile',
    '--project',
  ]);
  assert.deepEqual(await offered('zsh', ['completion', '']), { values: ['bash', 'zsh', 'fish'], rest: ':' });
  // Options after the sandbox belong to ssh.
  assert.deepEqual(await offered('zsh', ['ssh', 'sbx_a', '--j']), { values: [], rest: ':' });
  assert.deepEqual(await offered('zsh', ['tunnel', '--', '--j']), { values: [], rest: ':' });
  assert.deepEqual(await offered('zsh', ['tunnel', '--port', '']), { values: [], rest: ':' });
  assert.deepEqual(await offered('zsh', ['nothing', 'of', 'this', '']), { values: [], rest: ':' });
});

test('completion leaves files and folders to the shell', async () => {
  assert.deepEqual(await offered('zsh', ['up', '--plans-file', 'p']), { values: [], rest: ':file' });
  assert.deepEqual(await offered('zsh', ['up', '--plans-file=p']), { values: [], rest: ':file' });
  assert.deepEqual(await offered('bash', ['up', '--data-dir', '=', 'p']), { values: [], rest: ':folder' });
});

test('completion gets ids of agent sessions, and of sandboxes where both fit', async () => {
  const { id } = await world.client().agents.start(sandbox.id);
  const { stdout } = await berth(['__complete', 'zsh', 'agent', 'log', 'ags'], { env: environment });
  assert.equal(stdout, `${id}\tCodex (available)\n:\n`);
  assert.deepEqual((await offered('zsh', ['agent', 'recover', id, ''])).values, [id]);
  assert.deepEqual((await offered('zsh', ['agent', 'chat', ''])).values, [id, sandbox.id]);
  assert.deepEqual((await offered('zsh', ['agent', 'ls', '--sandbox', ''])).values, [sandbox.id]);
  assert.deepEqual((await offered('zsh', ['agent', 'answer', id, '1', '--decision', 'd'])).values, ['decline']);
});

test('completion gets ids of the processes of a sandbox', async () => {
  const { id } = await sandbox.spawn('npm start', { name: 'web' });
  const { stdout } = await berth(['__complete', 'zsh', 'logs', '-f', sandbox.id, 'prc'], { env: environment });
  assert.equal(stdout, `${id}\tweb (running)\n:\n`);
  assert.deepEqual((await offered('zsh', ['kill', '-s', 'INT', sandbox.id, id, ''])).values, [id]);
  assert.deepEqual((await offered('zsh', ['attach', 'sbx_other', ''])).values, []);
  assert.deepEqual((await offered('zsh', ['ps', ''])).values, [sandbox.id]);
});

test('completion gets ids of sandboxes, orgs and projects from the service, with escaped names', async () => {
  const { stdout } = await berth(['__complete', 'zsh', 'shell', 'sbx_'], { env: environment });
  assert.equal(stdout, `${sandbox.id}\tthe\\u001b[31mfirst (ready)\n:\n`);
  assert.deepEqual(await offered('zsh', ['shell', 'other']), { values: [], rest: ':' });
  assert.deepEqual(await offered('zsh', ['sandbox', 'ls', '--org', '']), { values: [world.orgId], rest: ':' });
  assert.deepEqual(await offered('zsh', ['sandbox', 'ls', '--project', 'prj']), {
    values: [world.projectId],
    rest: ':',
  });
  // Typed connection flags select the service.
  const elsewhere = { ...environment, BERTH_URL: 'http://127.0.0.1:9' };
  assert.deepEqual(await offered('zsh', ['shell', '--url', world.url, ''], elsewhere), {
    values: [sandbox.id],
    rest: ':',
  });
  assert.deepEqual(await offered('zsh', ['shell', `--url=${world.url}`, ''], elsewhere), {
    values: [sandbox.id],
    rest: ':',
  });
});

test('completion offers a value after an equals sign as each shell replaces it', async () => {
  assert.deepEqual((await offered('zsh', ['sandbox', 'ls', '--org='])).values, [world.orgId]);
  assert.deepEqual((await offered('fish', ['sandbox', 'ls', '--org=org'])).values, [`--org=${world.orgId}`]);
  assert.deepEqual((await offered('bash', ['sandbox', 'ls', '--org', '=', 'org'])).values, [world.orgId]);
  assert.deepEqual((await offered('bash', ['sandbox', 'ls', '--org', '='])).values, [world.orgId]);
});

test('completion reads profile names from their file', async () => {
  assert.deepEqual((await offered('zsh', ['whoami', '--profile', ''])).values, ['default']);
  const folder = join(newHome(), 'berth');
  await mkdir(folder);
  const profiles = {
    work: { url: 'https://berth.example.com' },
    play: { url: 'http://127.0.0.1:4800' },
    '$(id)': { url: '' },
  };
  await writeFile(join(folder, 'config.json'), JSON.stringify({ current: 'work', profiles }), { mode: 0o600 });
  const { stdout } = await berth(['__complete', 'zsh', 'whoami', '--profile', ''], {
    env: { XDG_CONFIG_HOME: join(folder, '..') },
  });
  assert.equal(stdout, 'work\thttps://berth.example.com (current)\nplay\thttp://127.0.0.1:4800\n:\n');
});

test('completion prints nothing without credentials, on a service failure or for a broken profile file', async () => {
  const folder = newHome();
  await mkdir(join(folder, 'berth'));
  await writeFile(join(folder, 'berth/config.json'), '{', { mode: 0o600 });
  for (const env of [
    { BERTH_API_KEY: '' },
    { ...environment, BERTH_URL: 'http://127.0.0.1:9' },
    { ...environment, BERTH_API_KEY: 'brt_wrong' },
    { ...environment, BERTH_URL: 'nonsense' },
    { BERTH_API_KEY: '', XDG_CONFIG_HOME: folder },
  ])
    assert.deepEqual(await offered('bash', ['shell', ''], env), { values: [], rest: ':' }, JSON.stringify(env));
});

/** Setup of completion in each shell, with a known prompt. */
const SHELLS = {
  bash: {
    program: 'bash',
    args: ['--norc', '--noprofile', '-i'],
    start: "PS1='<ready> '; source <(berth completion bash)",
  },
  zsh: {
    program: 'zsh',
    args: ['-f', '-i'],
    start: "PS1='<ready> '; autoload -Uz compinit && compinit -u -D && source <(berth completion zsh)",
  },
  fish: {
    program: 'fish',
    args: ['--no-config', '-i'],
    start: "function fish_prompt; printf '<ready> '; end; berth completion fish | source",
  },
} as const;

for (const [name, { program, args, start }] of Object.entries(SHELLS)) {
  test(`in ${name} the Tab key completes commands, options, ids and files`, async (t) => {
    const terminal = new PseudoTerminal(program, args, { ...environment, TERM: 'dumb', fish_greeting: '' });
    t.after(() => terminal.hangUp());
    // The home folder contains the files.
    terminal.type(`cd '${home}'\r`);
    terminal.type(`${start}; echo "<"loaded">"\r`);
    await terminal.shows('<loaded>');
    const completed = async (keys: string, expected: string): Promise<void> => {
      const from = terminal.text.length;
      terminal.type(keys);
      await terminal.shows(expected, from);
      terminal.type('\x15');
    };
    await completed('berth whoa\t', 'berth whoami');
    await completed('berth sandbox ls --js\t', 'sandbox ls --json');
    await completed('berth shell sbx_\t', `berth shell ${sandbox.id}`);
    await completed('berth cp sbx_\t', `berth cp ${sandbox.id}:`);
    await completed('berth cp plans.j\t', 'berth cp plans.json');
    await completed('berth up --plans-file plans.\t', '--plans-file plans.json');
    await completed('berth up --data-dir plans\t', '--data-dir plans-folder/');
    await completed('berth sandbox ls --org=\t', `--org=${world.orgId}`);
  });
}

test('completion for fish has values with descriptions', async () => {
  const script = `berth completion fish | source; complete -C 'berth shell sbx_'; complete -C 'berth completion '`;
  const { stdout } = await run('fish', ['--no-config', '-c', script], { env: environment, cwd: home });
  assert.equal(stdout, `${sandbox.id}\tthe\\u001b[31mfirst (ready)\nbash\nzsh\nfish\n`);
});
