// The real agents, fetched from npm's registry into a cache outside the checkout. Claude Code may
// not be redistributed: nothing of it is in the repository.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const CACHE = join(process.env['BERTH_CACHE_DIR'] || '/var/cache/berth', 'test-agents');

const PACKAGES = {
  codex: {
    version: '0.169.0',
    spec: '@openai/codex@0.169.0-linux-x64',
    integrity: 'sha512-o05NyAOCDygSPRo1yinzxvkRSdmsZyBD9E7mbpmjRanSfM8lypqWtQgEo4XfNkwhuCR2aFu8mlGOsQGFXVbVww==',
    program: 'vendor/x86_64-unknown-linux-musl/bin/codex',
  },
  claude: {
    version: '2.1.330',
    spec: '@anthropic-ai/claude-code-linux-x64@2.1.330',
    integrity: 'sha512-9Gn+V7DtJ8M1nztP9CeDVl9g3RtrepI7rOFTyPRRnZe8D6zebIHKmC7OvBauucuAP0X0k85SDN/LPVZyjsGezQ==',
    program: 'claude',
  },
} as const;

export type RealAgent = keyof typeof PACKAGES;

/** Version and paths of an agent; downloads it the first time. */
export async function realAgent(agent: RealAgent): Promise<{ version: string; paths: Record<string, string> }> {
  const { version, spec, integrity, program } = PACKAGES[agent];
  const folder = join(CACHE, `${agent}-${version}`);
  if (!existsSync(folder)) await fetchPackage(spec, integrity, folder);
  return { version, paths: { [agent]: join(folder, program) } };
}

async function fetchPackage(spec: string, integrity: string, folder: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const work = await mkdtemp(join(CACHE, 'fetch-'));
  try {
    await run('npm', ['pack', '--silent', '--pack-destination', work, spec], { cwd: work });
    const { stdout } = await run('ls', [work]);
    const archive = join(work, stdout.trim());
    const digest = `sha512-${createHash('sha512')
      .update(await readFile(archive))
      .digest('base64')}`;
    if (digest !== integrity) throw new Error(`${spec} has the integrity ${digest}, expected ${integrity}`);
    await mkdir(join(work, 'package'));
    await run('tar', ['-xzf', archive, '-C', join(work, 'package'), '--strip-components=1']);
    await chmod(join(work, 'package'), 0o755);
    // Fails if another process was first; its copy is the same.
    await rename(join(work, 'package'), folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
