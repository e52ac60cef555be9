import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { until } from '../../../os/test/until.ts';
import { agentListFile, AgentPackageError, ensureAgent, type AgentPackage } from '../../src/build/agents.ts';
import type { Progress } from '../../src/build/progress.ts';
import { readAgents } from '../../src/build/recipe.ts';
import { archiveOf, fileEntry, pinned, serveLocalRegistry, type LocalRegistry } from './local-registry.ts';

const run = promisify(execFile);
const AGENTS = join(import.meta.dirname, '../../src/build/agents.ts');

describe('a coding agent of the image', { timeout: 300_000 }, () => {
  const signal = AbortSignal.timeout(300_000);
  let folder: string;
  let registry: LocalRegistry;
  let archive: Buffer;
  const steps: Progress[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-agents-'));
    archive = await archiveOf([
      fileEntry('bin/agent', 'the program'),
      fileEntry('voice/other', randomBytes(2_000_000)),
      fileEntry('package.json', '{"name":"berth-test-agent","version":"1.0.0"}'),
    ]);
    registry = await serveLocalRegistry(archive);
  });
  afterEach(async () => {
    await registry.close();
    await rm(folder, { recursive: true });
  });

  const fetchOf = (cacheFolder = folder) => ({
    ...{ cacheFolder, workFolder: join(cacheFolder, 'work'), registry: registry.url, signal },
    onProgress: (progress: Progress) => void steps.push(progress),
  });
  const ensure = (agent: AgentPackage, cacheFolder?: string): Promise<string> =>
    ensureAgent(agent, fetchOf(cacheFolder));
  const published = (): Promise<string[]> => readdir(join(folder, 'agents')).catch(() => []);

  it('has its listed files only, and is fetched once, with progress', async () => {
    const files = await ensure(pinned(archive));
    assert.equal(await readFile(join(files, 'bin/agent'), 'utf8'), 'the program');
    assert.deepEqual(await readdir(files, { recursive: true }), ['bin', 'bin/agent']);
    assert.equal((await stat(join(files, 'bin/agent'))).mode & 0o111, 0o111);
    assert.match(steps[0]?.message ?? '', /^Download agent 1\.0\.0/);
    const requests = registry.requests.length;
    assert.equal(await ensure(pinned(archive)), files);
    assert.equal(registry.requests.length, requests);
  });

  it('is fetched anew when a file of the cache was changed, or the recipe takes other files', async () => {
    const files = await ensure(pinned(archive));
    await writeFile(join(files, 'bin/agent'), 'damaged');
    assert.equal(await readFile(join(await ensure(pinned(archive)), 'bin/agent'), 'utf8'), 'the program');
    const more = await ensure(pinned(archive, ['bin/agent', 'package.json']));
    assert.deepEqual((await readdir(more)).sort(), ['bin', 'package.json']);
  });

  it('of another content is refused, although it fits the integrity of its registry', async () => {
    registry.archive = await archiveOf([fileEntry('bin/agent', 'something else')]);
    await assert.rejects(ensure(pinned(archive)), (error: Error) => {
      assert.ok(error instanceof AgentPackageError);
      assert.match(error.message, /^cannot fetch agent_one \(berth-test-agent@1\.0\.0\): its integrity is sha512-/);
      assert.match(error.message, /BERTH_AGENTS=none leaves out all$/);
      return true;
    });
    assert.deepEqual(await published(), []);
  });

  it('of another size is not stored: a registry cannot fill the disk', async () => {
    registry.isEndless = true;
    await assert.rejects(ensure(pinned(archive)), AgentPackageError);
    for (const name of await readdir(folder, { recursive: true }))
      assert.ok((await stat(join(folder, name))).size <= 32 * 1_024 * 1_024, name);
    assert.deepEqual(await published(), []);
  });

  it('with links instead of files, or without a file, is refused and writes nothing elsewhere', async () => {
    const outside = join(folder, 'outside');
    await mkdir(outside);
    const linked = await archiveOf([
      { path: 'package/bin', type: 'link', target: outside },
      fileEntry('bin/agent', 'escaped'),
      fileEntry('../../../escaped', 'escaped'),
    ]);
    registry.archive = linked;
    await ensure(pinned(linked)).catch(() => undefined);
    const link = await archiveOf([{ path: 'package/bin/agent', type: 'link', target: '/etc/passwd' }]);
    registry.archive = link;
    await assert.rejects(ensure(pinned(link)), /bin\/agent is not a file/);
    registry.archive = archive;
    await assert.rejects(ensure(pinned(archive, ['bin/absent'])), /Not found in archive/);
    assert.deepEqual(await readdir(outside), []);
  });

  it('that no registry has is refused with the words of npm', async () => {
    await assert.rejects(
      ensure({ ...pinned(archive), package: 'berth-test-agent@2.0.0' }),
      /cannot fetch agent_one [^]*No matching version/,
    );
  });

  it('on a full disk is refused, and fetched when there is space', async () => {
    const small = join(folder, 'small');
    await mkdir(small);
    await run('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'none', small]);
    try {
      await assert.rejects(ensure(pinned(archive), small), /ENOSPC|No space left/);
      await run('mount', ['-o', 'remount,size=32m', small]);
      await ensure(pinned(archive), small);
    } finally {
      await run('umount', [small]);
    }
  });

  it('whose fetch was killed leaves no process, and is fetched anew', async () => {
    registry.stalls = true;
    const code = `const { ensureAgent } = await import(${JSON.stringify(AGENTS)});
      const { agent, fetch } = JSON.parse(process.argv[1]);
      await ensureAgent(agent, { ...fetch, onProgress: () => {}, signal: AbortSignal.timeout(300_000) });`;
    const { cacheFolder, workFolder, registry: url } = fetchOf();
    const order = { agent: pinned(archive), fetch: { cacheFolder, workFolder, registry: url } };
    const args = ['--input-type=module', '--eval', code, JSON.stringify(order)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    await until('the archive is requested', async () => (registry.requests.length >= 2 ? true : null));
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    await until('npm has ended', async () => {
      const { stdout } = await run('pgrep', ['-fc', `--pack-destination=${folder}`]).catch(() => ({ stdout: '0' }));
      return stdout.trim() === '0' ? true : null;
    });
    assert.deepEqual(await published(), []);
    registry.stalls = false;
    assert.equal(await readFile(join(await ensure(pinned(archive)), 'bin/agent'), 'utf8'), 'the program');
  });
});

describe('the agents of the recipe', () => {
  it('are pinned by exact versions, and listed for the guest daemon', async () => {
    const agents = await readAgents();
    assert.deepEqual(
      agents.map(({ id }) => id),
      ['agent_one', 'agent_two'],
    );
    for (const { package: name, version, files, program } of agents) {
      assert.ok(name.includes(`@${version}`), name);
      assert.ok(files.includes(program), name);
    }
    const list = JSON.parse(agentListFile(agents)) as { agents: { paths: object }[] };
    assert.deepEqual(
      list.agents.map(({ paths }) => paths),
      [{ codex: '/opt/berth/agents/codex/bin/codex' }, { claude: '/opt/berth/agents/claude/claude' }],
    );
  });
});
