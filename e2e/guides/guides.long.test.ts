// Runs docs/quick-start.md and docs/operator-guide.md as written, on a fresh service: real VMs, the
// real CLI, the built SDK.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { listSandboxes } from '../world/client.ts';
import { blocksOf, printed, type Block } from './document-blocks.ts';
import { startInstance, type Instance } from '../world/instance.ts';
import { signInOwner } from '../world/owner.ts';
import { until } from '../../os/test/until.ts';

const CHECKOUT = join(import.meta.dirname, '../..');
const DEADLINE_MS = 300_000;
/** Never occurs in program output. */
const MARK = '\u0001';

let service: Instance;
/** Resembles the checkout, with its own build output. */
let folder: string;
let environment: Record<string, string | undefined>;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-guides-'));
  await copyOfCheckout(folder);
  service = await startInstance('guides', { BERTH_SCRIPTED_AGENT: '1' });
  const home = join(folder, 'home');
  await mkdir(home);
  environment = {
    PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
    HOME: home,
    BERTH_URL: service.url,
    BERTH_DATA_DIR: service.dataFolder,
  };
});
after(async () => {
  await service?.end();
  await rm(folder, { recursive: true, force: true });
});

async function copyOfCheckout(to: string): Promise<void> {
  const others = (await readdir(CHECKOUT)).filter((name) => !['sdk', 'node_modules', '.git'].includes(name));
  for (const name of others) await symlink(join(CHECKOUT, name), join(to, name));
  await cp(join(CHECKOUT, 'sdk'), join(to, 'sdk'), {
    recursive: true,
    filter: (path) => !/\/sdk\/(?:dist|test)$/.test(path),
  });
  await mkdir(join(to, 'node_modules/@berth'), { recursive: true });
  for (const name of await readdir(join(CHECKOUT, 'node_modules')))
    if (name !== '@berth') await symlink(join(CHECKOUT, 'node_modules', name), join(to, 'node_modules', name));

  await symlink(join(to, 'sdk/dist'), join(to, 'node_modules/@berth/sdk'));
}

/** Runs a program in the folder. Resolves with stdout; rejects with all output on failure. */
async function run(program: string, args: readonly string[], more: Record<string, string> = {}): Promise<string> {
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...environment, ...more },
    timeout: DEADLINE_MS,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [code] = (await once(child, 'close')) as [number | null];
  assert.equal(code, 0, `${program} ${args[0]}: ${stdout}${stderr}`);
  return stdout;
}

/** Runs pasted code like a shell, stopping at the first failing line. */
const paste = async (code: string): Promise<string> => await run('bash', ['--norc', '-eo', 'pipefail', '-c', code]);

async function quickStart(heading: string): Promise<Block> {
  const [block, ...others] = (await blocksOf('quick-start.md')).filter((each) => each.heading === heading);
  assert.ok(block !== undefined && others.length === 0, heading);
  assert.equal(block.language, 'sh');
  const lines = block.code.trimEnd().split('\n').length;
  assert.ok(lines <= 10, `${lines} lines`);
  return block;
}

for (const [heading, expected] of [
  ['The command line', /\nLinux [^]*\n42\n[^]*sbx_[^]*customer-7[^]* deleted\n$/],
  ['TypeScript', /stdout: '42\\n'/],
  ['HTTP', /"exitCode":0,"stdout":"42\\n"[^]*"status":"(?:deleted|destroying)"/],
] as const) {
  test(`the quick start "${heading}" has at most ten lines, works unchanged and leaves nothing`, async () => {
    const { code } = await quickStart(heading);
    assert.match(await paste(code), expected);
    // A destroy may still be in progress after its response.
    await until('the sandbox is gone', async () => ((await listSandboxes(service)).length === 0 ? true : null));
  });
}

test("the operator's guide runs as one program, prints the page's output and type-checks", async () => {
  const blocks = await blocksOf('operator-guide.md');
  const parts: string[] = [];
  for (const [at, { language, code }] of blocks.entries()) {
    if (language === 'text') continue;
    // Placed between two blocks of the program, as on the page.
    const args = `['-eo', 'pipefail', '-c', ${JSON.stringify(code)}]`;
    const step =
      language === 'ts' ? code : `process.stdout.write(execFileSync('bash', ${args}, { encoding: 'utf8' }));`;
    assert.ok(['ts', 'sh'].includes(language), language);
    parts.push(`process.stdout.write('${MARK}${at}${MARK}');`, step);
  }
  const program = join(folder, 'guide.mts');
  await writeFile(program, `import { execFileSync } from 'node:child_process';\n${parts.join('\n')}`);
  await run(process.execPath, ['sdk/build/build.ts']);
  const strict = [
    '--ignoreConfig',
    '--strict',
    '--noEmit',
    '--module',
    'nodenext',
    '--target',
    'es2024',
    '--lib',
    'es2024,dom',
    '--skipLibCheck',
    '--types',
    'node',
  ];
  await run(process.execPath, ['node_modules/typescript/bin/tsc', ...strict, program]);

  // After the quick start, whose login is that of the current profile.
  await signInOwner(service, { home: environment['HOME'] ?? '', profile: 'admin' });
  const { token, projectId } = service;
  const output = await run(process.execPath, [program], {
    BERTH_API_KEY: token,
    BERTH_PROJECT_ID: projectId,
    OPENAI_API_KEY: 'sk-of-the-guide',
    NO_COLOR: '1',
  });
  const said = new Map<number, string>();
  for (const [, at, text = ''] of output.matchAll(new RegExp(`${MARK}(\\d+)${MARK}([^${MARK}]*)`, 'g')))
    said.set(Number(at), text.trim());
  for (const [at, { language, code, heading }] of blocks.entries()) {
    if (language === 'text') {
      assert.match(said.get(at - 1) ?? '', printed(code), `below "${heading}"`);
    } else {
      assert.ok(
        said.get(at) === '' || blocks[at + 1]?.language === 'text',
        `what is printed below "${heading}" is shown there: ${said.get(at)}`,
      );
    }
  }
  assert.deepEqual(await listSandboxes(service), []);
});
