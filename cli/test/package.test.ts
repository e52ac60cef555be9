// The published package, installed locally and globally, under the host's Node and ours.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Metafile } from 'esbuild';
import { realWorld, type World } from '../../sdk/test/worlds.ts';
import { build } from '../build/build.ts';
import { serviceEntries } from '../src/machine/spec.ts';
import { ApiServer } from './world/api-server.ts';
import { cleanEnvironment, type Ended } from './world/berth.ts';

const CLI = join(import.meta.dirname, '..');
const CHECKOUT = join(CLI, '..');
/** The only parts of machine/ allowed in the package. */
const OF_THE_MACHINE = ['command-hint', 'failure', 'progress'].map((name) => `machine/src/output/${name}.ts`);
const LARGEST_PACKAGE_BYTES = 400 * 1024;

let folder: string;
let metafile: Metafile;
let packedBytes: number;
let world: World;
/** `berth` of the local and of the global installation. */
let programs: { project: string; prefix: string };

before(async () => {
  metafile = await build();
  folder = await mkdtemp(join(tmpdir(), 'berth-cli-'));
  const [project, prefix] = [join(folder, 'project'), join(folder, 'prefix')];
  await mkdir(project);
  await mkdir(prefix);
  npm(['pack', '--ignore-scripts', '--pack-destination', folder], CLI);
  const [name] = (await readdir(folder)).filter((file) => file.endsWith('.tgz'));
  assert.ok(name !== undefined);
  const tarball = join(folder, name);
  packedBytes = (await stat(tarball)).size;
  await writeFile(join(project, 'package.json'), '{ "private": true }');
  npm(['install', '--offline', '--no-audit', '--no-fund', tarball], project);
  npm(['install', '--global', '--prefix', prefix, '--offline', '--no-audit', '--no-fund', tarball], folder);
  programs = { project: join(project, 'node_modules/.bin/berth'), prefix: join(prefix, 'bin/berth') };
  world = await realWorld();
});
after(async () => {
  await world?.close();
  await rm(folder, { recursive: true, force: true });
});

function npm(args: readonly string[], cwd: string): void {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8' });
  assert.equal(status, 0, `npm ${args.join(' ')}: ${stdout}${stderr}`);
}

/** Node of the host, different from the one running the tests. */
function nodeOfTheMachine(): string {
  const folders = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((path) => !path.startsWith(join(CHECKOUT, 'node_modules')));
  const found = folders.map((path) => join(path, 'node')).find((path) => existsSync(path));
  assert.ok(found !== undefined, 'there is no other Node on this machine');
  return found;
}

/**
 * Runs berth through its shebang, with only this Node in PATH. Must not block the service in this
 * process.
 */
async function berthWith(
  node: string,
  program: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Ended> {
  const bin = await mkdtemp(join(folder, 'bin-'));
  await symlink(node, join(bin, 'node'));
  // The package has its own compile cache.
  const own = { PATH: [bin, '/usr/bin', '/bin'].join(delimiter), NODE_COMPILE_CACHE: undefined };
  const environment = cleanEnvironment({ ...own, ...env });
  return await new Promise((resolve) => {
    const child = execFile(program, args, { env: environment, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
    child.stdin?.end();
  });
}

for (const [which, nodeOf] of [
  ['the Node of the tests', () => process.execPath],
  ['the Node of the machine', nodeOfTheMachine],
] as const) {
  test(`with ${which} help works, from a project and from a prefix`, async (t) => {
    const node = nodeOf();
    t.diagnostic(spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim());
    for (const program of Object.values(programs)) {
      const { code, stdout, stderr } = await berthWith(node, program, ['--help']);
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /^Usage: berth [^]*\n {2}sandbox\|sb [^]*\n {2}whoami /);
      assert.equal((await berthWith(node, program, ['--version'])).stdout, '0.1.0\n');
    }
    assert.match(
      (await berthWith(node, programs.prefix, ['sandbox', 'ls', '--help'])).stdout,
      /Examples:\n {2}\$ berth sandbox ls/,
    );
    assert.equal((await berthWith(node, programs.prefix, ['sandbox', 'sl'])).code, 2);
  });

  test(`with ${which} requests work and refusals are reported`, async () => {
    const env = { BERTH_URL: world.url, BERTH_API_KEY: world.apiKey };
    const sandbox = await world.client().sandboxes.create({ agent: 'agent_one', name: 'packed' });
    const listed = await berthWith(nodeOf(), programs.prefix, ['sandbox', 'ls', '--json'], env);
    assert.deepEqual([listed.code, listed.stderr], [0, '']);
    const { sandboxes } = JSON.parse(listed.stdout) as { sandboxes: { id: string }[] };
    assert.ok(sandboxes.some(({ id }) => id === sandbox.id));
    assert.match(
      (await berthWith(nodeOf(), programs.project, ['sandbox', 'ls'], env)).stdout,
      new RegExp(`${sandbox.id} +packed +ready`),
    );
    assert.match(
      (await berthWith(nodeOf(), programs.prefix, ['__complete', 'bash', 'shell', 'sbx_'], env)).stdout,
      new RegExp(sandbox.id),
    );
    const refused = await berthWith(nodeOf(), programs.prefix, ['whoami'], { ...env, BERTH_API_KEY: 'brt_wrong' });
    assert.deepEqual([refused.code, refused.stdout], [4, '']);
    assert.equal((await berthWith(nodeOf(), programs.prefix, ['whoami'])).code, 4);
    await sandbox.destroy();
  });

  test(`with ${which} WebSockets work`, async (t) => {
    const api = await ApiServer.start();
    t.after(() => api.close());
    api.answer = (socket) => {
      socket.send(Buffer.from('from the port'));
      socket.send(JSON.stringify({ end: true }));
      socket.on('message', (_data, isBinary) => {
        if (!isBinary) socket.close(1000);
      });
    };
    const { BERTH_URL = '', BERTH_API_KEY = '' } = api.environment;
    const { code, stdout, stderr } = await berthWith(
      nodeOf(),
      programs.prefix,
      ['tunnel', 'sbx_abcabcabcabcabcabcabcabc'],
      {
        BERTH_URL,
        BERTH_API_KEY,
      },
    );
    assert.deepEqual([code, stdout, stderr], [0, 'from the port', '']);
  });

  test(`with ${which} every installation command is listed and reports where it runs, with any arguments`, async () => {
    const { stdout: help } = await berthWith(nodeOf(), programs.prefix, ['--help']);
    assert.equal(serviceEntries.length, 11);
    for (const entry of serviceEntries) {
      assert.match(help, new RegExp(`^ {2}${entry.name} `, 'm'));
      const words = 'commands' in entry ? entry.commands.map(({ name }) => `${entry.name} ${name}`) : [entry.name];
      for (const word of words) {
        const { code, stdout, stderr } = await berthWith(nodeOf(), programs.prefix, [
          ...word.split(' '),
          '--port',
          '5000',
          'more',
        ]);
        assert.deepEqual([code, stdout], [2, '']);
        assert.equal(
          stderr,
          `berth: berth ${word} is available only in a checkout of Berth on the host of the service: ./berth ${word}\n`,
        );
      }
    }
  });
}

test('the compile cache is in a folder of the user, if Node supports it', async () => {
  const home = join(folder, 'home');
  await berthWith(process.execPath, programs.prefix, ['--help'], { HOME: home });
  assert.ok((await readdir(join(home, '.cache/berth/node-compile'))).length > 0);
});

test('the package holds the program and all licences, no installation code and no dependencies', async (t) => {
  const root = join(folder, 'prefix/lib/node_modules/@berth/cli');
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;
  assert.deepEqual(
    [manifest['dependencies'], manifest['peerDependencies'], manifest['optionalDependencies']],
    [undefined, undefined, undefined],
  );
  assert.deepEqual((await readdir(root)).sort(), ['LICENSE', 'README.md', 'dist', 'package.json']);
  assert.deepEqual(await readdir(join(folder, 'project/node_modules/@berth')), ['cli']);

  const sources = Object.keys(metafile.inputs);
  assert.deepEqual(sources.filter((path) => path.startsWith('machine/')).sort(), OF_THE_MACHINE);
  const ours = ['cli', 'contract', 'protocol', 'sdk', 'machine'];
  const others = sources.filter(
    (path) => !ours.includes(path.split('/')[0] ?? '') && !path.startsWith('node_modules/'),
  );
  assert.deepEqual(others, []);

  const licences = await readFile(join(root, 'dist/LICENSES.txt'), 'utf8');
  const packages = new Set(
    sources.map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter((name) => name !== undefined),
  );
  assert.ok(packages.size > 3);
  for (const name of packages) assert.match(licences, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(\\S+\\)$`, 'm'));

  const unpacked = Object.values(metafile.outputs).reduce((sum, { bytes }) => sum + bytes, 0);
  t.diagnostic(`${packedBytes} bytes packed, ${unpacked} without compression`);
  assert.ok(packedBytes < LARGEST_PACKAGE_BYTES, `${packedBytes} bytes`);
});

test('help loads neither the SDK nor zod nor ws', () => {
  const outputs = metafile.outputs;
  const loaded = new Set<string>();
  const load = (path: string): void => {
    if (loaded.has(path)) return;
    loaded.add(path);
    for (const { path: next, kind } of outputs[path]?.imports ?? []) if (kind === 'import-statement') load(next);
  };
  load('cli/dist/berth.js');
  // The entry loads the program after enabling the compile cache.
  for (const { path, kind } of outputs['cli/dist/berth.js']?.imports ?? []) if (kind === 'dynamic-import') load(path);
  const inputs = [...loaded].flatMap((path) => Object.keys(outputs[path]?.inputs ?? {}));
  assert.ok(inputs.includes('cli/src/program/program.ts'));
  // Modules of limits are plain numbers, used by options.
  const heavy = inputs.filter((path) => /^(?:sdk|contract)\/|node_modules\/(?:zod|ws|tar)\//.test(path));
  assert.deepEqual(
    heavy.filter((path) => !/^sdk\/src\/generated\/(?:command-)?limits\.ts$/.test(path)),
    [],
  );
});
