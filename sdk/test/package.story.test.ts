// The published package, installed into an empty project, under the host's Node, ours and a
// browser; under Bun and Deno with npm run sdk:runtimes.
import assert from 'node:assert/strict';
import { execFile, spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build as bundle } from 'esbuild';
import { openBrowser } from '../../api/test/pages/browser.ts';
import { build } from '../build/build.ts';
import { realWorld, type World } from './worlds.ts';

const SDK = join(import.meta.dirname, '..');
const CHECKOUT = join(SDK, '..');
/**
 * Compressed bytes in a browser. `client`: the entry with all chunks that it imports statically;
 * `whole`: all that is loaded on first use too.
 */
const LARGEST_BUNDLE = { client: 20 * 1024, whole: 25 * 1024 };

let project: string;
before(async () => {
  build();
  project = await mkdtemp(join(tmpdir(), 'berth-sdk-'));
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', project], join(SDK, 'dist'));
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', './berth-sdk-0.1.0.tgz'], project);
});
after(() => rm(project, { recursive: true, force: true }));

function run(
  program: string,
  args: readonly string[],
  cwd: string,
  environment: Record<string, string> = {},
): SpawnSyncReturns<string> {
  const done = spawnSync(program, args, { cwd, encoding: 'utf8', env: { ...process.env, ...environment } });
  assert.equal(done.status, 0, `${program} ${args.join(' ')}: ${done.stdout}${done.stderr}`);
  return done;
}

/** Node of the host, different from the one running the tests. */
function otherNodes(): string[] {
  const folders = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.startsWith(join(CHECKOUT, 'node_modules')));
  return folders
    .map((folder) => join(folder, 'node'))
    .filter((path) => existsSync(path))
    .slice(0, 1);
}

const USE = `
import { Berth, BerthError } from '@berth/sdk';
import { TestServer } from '@berth/sdk/testing';

async function use(berth) {
  const sandbox = await berth.sandboxes.create({ agent: 'agent_one', endUserId: 'packed' });
  const { stdout } = await sandbox.exec('echo from the package').orThrow();
  await sandbox.files.write('a', new Uint8Array([255, 0, 1]));
  const bytes = await sandbox.files.readBytes('a');
  const late = await sandbox.exec('hang', { timeoutMs: 100 }).catch(codeOf);
  const stopper = new AbortController();
  const hanging = sandbox.exec('hang', { signal: stopper.signal }).catch(codeOf);
  stopper.abort();
  const stopped = await hanging;
  const streamed = await stream(sandbox).catch(codeOf);
  await sandbox.sleep();
  await sandbox.wake();
  const left = (await berth.sandboxes.list({ endUserId: 'packed' })).length;
  await sandbox[Symbol.asyncDispose]();
  const code = await berth.sandboxes.get('sbx_nothing').catch((error) => error instanceof BerthError && error.code);
  return { stdout, bytes: [...bytes], left, code, late, stopped, streamed };
}

async function stream(sandbox) {
  const tunnel = await sandbox.connect(80);
  await write(tunnel.writable, 'through the tunnel');
  const echoed = await new Response(tunnel.readable).text();
  await tunnel.closed;
  const command = await sandbox.command('cat; exit 3');
  const stderr = new Response(command.stderr).text();
  await write(command.stdin, 'through the command');
  const output = await new Response(command.stdout).text();
  const terminal = await sandbox.terminal();
  terminal.signal('SIGTERM');
  return [echoed, output, await stderr, (await command.exited).exitCode, (await terminal.exited).signal];
}

async function write(stream, text) {
  const writer = stream.getWriter();
  await writer.write(text);
  await writer.close();
}

const codeOf = (error) => (error instanceof BerthError ? error.code : error.name);

const hang = () => new Promise(() => {});
const exec = (command) => (command === 'hang' ? hang() : command.replace('echo ', '') + '\\n');
const server = new TestServer({ exec });
const nobody = await new Berth({ url: 'http://127.0.0.1:9', maxRetries: 0 }).me().catch(codeOf);
console.log(JSON.stringify([await use(server.client()), await use(new Berth()), nobody]));
`;

interface Runtime {
  name: string;
  /** Undefined: not installed. */
  program: string | undefined;
  /** Arguments before the script. */
  flags?: readonly string[];
}

const BROUGHT = process.env['BERTH_TEST_RUNTIMES'];
const RUNTIMES: readonly Runtime[] = [
  { name: 'the Node of the tests', program: process.execPath },
  { name: 'the Node of the machine', program: otherNodes()[0] },
  ...(BROUGHT === undefined
    ? []
    : [
        { name: 'Bun', program: join(BROUGHT, 'bun') },
        {
          name: 'Deno',
          program: join(BROUGHT, 'deno'),
          // Only the permissions that a client needs: the service and its variables.
          flags: [
            'run',
            '--no-prompt',
            '--no-remote',
            '--allow-net=127.0.0.1',
            '--allow-env=BERTH_URL,BERTH_API_KEY,BERTH_PROJECT_ID,BERTH_ORG_ID',
          ],
        },
      ]),
];

for (const { name, program, flags = [] } of RUNTIMES) {
  test(`the package works with ${name}, on the test server and on the real one`, async (t) => {
    assert.ok(program !== undefined && existsSync(program), `there is no ${program ?? 'other Node on this machine'}`);
    const world: World = await realWorld();
    t.after(() => world.close());
    await writeFile(join(project, 'use.mjs'), USE);
    const { url, apiKey, projectId } = world;
    const environment = { ...process.env, BERTH_URL: url, BERTH_API_KEY: apiKey, BERTH_PROJECT_ID: projectId };
    const version = run(program, ['--version'], project).stdout.split('\n', 1)[0] ?? '';
    const hasWebSocket = !/^v(?:20|21)\./.test(version);
    // Must not block the service in this process.
    const { stdout } = await promisify(execFile)(program, [...flags, 'use.mjs'], { cwd: project, env: environment });
    const seen = {
      stdout: 'from the package\n',
      bytes: [255, 0, 1],
      left: 1,
      code: 'sandbox_not_found',
      late: 'timeout',
      stopped: 'AbortError',
      // The test server has no streams.
      streamed: 'configuration',
    };
    const streamed = hasWebSocket ? ['through the tunnel', 'through the command', '', 3, 'SIGTERM'] : 'configuration';
    assert.deepEqual(JSON.parse(stdout), [seen, { ...seen, streamed }, 'connection_failed'], version);
    t.diagnostic(version);
  });
}

/** An export of the published package. */
interface Compiled {
  types?: string;
  default?: string;
}

test('the package contains only the build output and has no dependencies', async () => {
  const root = join(project, 'node_modules/@berth/sdk');
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;
  assert.equal(manifest['dependencies'], undefined);
  assert.equal(manifest['peerDependencies'], undefined);
  for (const { types, default: module } of Object.values(manifest['exports'] as Record<string, Compiled>)) {
    for (const file of [types, module].filter((path) => path !== undefined))
      assert.ok(existsSync(join(root, file)), file);
  }
  for (const file of ['index.js', 'index.d.ts', 'testing/index.js', 'testing/index.d.ts', 'README.md', 'LICENSE'])
    assert.ok(existsSync(join(root, file)), file);
  assert.ok(!existsSync(join(root, 'src')) && !existsSync(join(root, 'test')));
});

test("the package's types are self-contained in both module resolutions of TypeScript", async () => {
  const code = `
    import { Berth, type Sandbox, type SandboxStatus, type SandboxTunnel } from '@berth/sdk';
    import { SSH_PORT } from '@berth/sdk/limits';
    import { TestServer } from '@berth/sdk/testing';
    export async function use(berth: Berth): Promise<Sandbox> {
      const sandbox = await berth.sandboxes.create({ agent: 'agent_one', projectId: 'prj_1' });
      const status: SandboxStatus | (string & {}) = sandbox.status;
      return (await sandbox.exec(status)).ok ? sandbox : sandbox.waitUntil('ready');
    }
    export const connect = (sandbox: Sandbox): Promise<SandboxTunnel> => sandbox.connect(SSH_PORT);
    export const server: TestServer = new TestServer();
  `;
  await writeFile(join(project, 'use.ts'), code);
  const compiler = join(createRequire(join(CHECKOUT, 'package.json')).resolve('typescript/package.json'), '../bin/tsc');
  for (const module of [
    ['--module', 'nodenext', '--moduleResolution', 'nodenext'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ]) {
    run(
      process.execPath,
      [
        compiler,
        '--noEmit',
        '--strict',
        '--target',
        'es2022',
        '--lib',
        'es2022,dom,esnext.disposable',
        '--types',
        '',
        ...module,
        'use.ts',
      ],
      project,
    );
  }
});

/** @param splitting leaves out what is loaded on first use */
async function bundled(code: string, { splitting = false } = {}): Promise<string> {
  await writeFile(join(project, 'entry.mjs'), code);
  const options = {
    absWorkingDir: project,
    bundle: true,
    minify: true,
    write: false,
    platform: 'browser',
    target: 'es2022',
    outdir: '.',
    ...(splitting ? ({ format: 'esm', splitting } as const) : ({ format: 'iife' } as const)),
  } as const;
  const { outputFiles, metafile } = await bundle({ ...options, metafile: true, entryPoints: ['entry.mjs'] });
  const loaded = new Set(['entry.js']);
  for (const output of loaded) {
    const imports = metafile.outputs[output]?.imports ?? [];
    for (const { path, kind } of imports) if (kind === 'import-statement') loaded.add(path);
  }
  return outputFiles.flatMap(({ path, text }) => (loaded.has(basename(path)) ? [text] : [])).join('');
}

test('a client loads less than 20 KiB in a browser, compressed, and the whole SDK less than 25', async (t) => {
  const code = `import { Berth } from '@berth/sdk'; globalThis.Berth = Berth;`;
  const sizeOf = (text: string): number => gzipSync(text, { level: 9 }).length;
  const [client, whole] = [sizeOf(await bundled(code, { splitting: true })), sizeOf(await bundled(code))];
  t.diagnostic(`${client} bytes with gzip, ${whole} with what is loaded on first use`);
  assert.ok(client < LARGEST_BUNDLE.client && whole < LARGEST_BUNDLE.whole, `${client} and ${whole} bytes`);
});

test('in a browser a command gets input and returns output and exit code', async (t) => {
  const world = await realWorld();
  t.after(() => world.close());
  const { id } = await world.client().sandboxes.create({ agent: 'agent_one' });
  const { url, apiKey } = world;
  const text = await bundled(`
    import { Berth } from '@berth/sdk';
    globalThis.used = (async () => {
      const sandbox = new Berth(${JSON.stringify({ url, apiKey })}).sandboxes.streams(${JSON.stringify(id)});
      const command = await sandbox.command('cat; exit 3');
      const writer = command.stdin.getWriter();
      await writer.write('grüße');
      await writer.close();
      const said = await new Response(command.stdout).text();
      return [said, (await command.exited).exitCode].join(' ');
    })();
  `);
  const browser = await openBrowser('http://nowhere.test', 'http://127.0.0.1:9');
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.addScriptTag({ content: text });
  assert.equal(await page.evaluate('globalThis.used'), 'grüße 3');
});

test('in a browser the SDK creates, uses and destroys a sandbox', async (t) => {
  const text = await bundled(`
    import { TestServer } from '@berth/sdk/testing';
    globalThis.used = (async () => {
      const berth = new TestServer({ exec: (command) => command }).client();
      const sandbox = await berth.sandboxes.create({ agent: 'agent_one' });
      await sandbox.files.write('a', 'ü');
      const seen = [await sandbox.files.read('a'), (await sandbox.exec('x')).stdout, (await sandbox.destroy()).status];
      return seen.join(' ');
    })();
  `);
  const browser = await openBrowser('http://nowhere.test', 'http://127.0.0.1:9');
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.addScriptTag({ content: text });
  assert.equal(await page.evaluate('globalThis.used'), 'ü x deleted');
});
