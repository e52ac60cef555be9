// A Berth installation for one test file: `./berth up` on a fresh data folder and free port.
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../../protocol/test/free-port.ts';
import { destroySandbox, listSandboxes, type Caller } from './client.ts';
import { leftoversOf, processesOfVm } from './leftovers.ts';
import { TEST_ENVIRONMENT } from './parts.ts';

const CHECKOUT = join(import.meta.dirname, '../..');
const START_DEADLINE_MS = 300_000;

export interface Instance extends Caller {
  dataFolder: string;
  /** Process id of the sandbox's QEMU. */
  qemuPid(sandboxId: string): Promise<number>;
  /** Destroys every sandbox, runs `./berth down`, and fails when anything is left on the host. */
  end(): Promise<void>;
}

/**
 * An instance that runs from before the first test of a file until after the last one. Not for
 * files with another `before`: hooks of a file do not wait for each other.
 */
export function instanceForTests(name: string, environment: Record<string, string> = {}): Instance {
  const instance = {} as Instance;
  before(async () => void Object.assign(instance, await startInstance(name, environment)));
  after(() => instance.end?.());
  return instance;
}

/** Starts it and resolves with its first org, project and API key, as printed. */
export async function startInstance(name: string, environment: Record<string, string> = {}): Promise<Instance> {
  const dataFolder = await mkdtemp(join(tmpdir(), `berth-${name}-`));
  const port = await freePort();
  const flags = ['--data-dir', dataFolder, '--port', String(port)];
  const supervisor = spawn(join(CHECKOUT, 'berth'), ['up', ...flags], {
    env: { ...process.env, ...TEST_ENVIRONMENT, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const greeting = await greetingOf(supervisor);
  const printed = (pattern: RegExp): string => {
    const found = pattern.exec(greeting)?.[1];
    assert.ok(found !== undefined, `berth up printed no ${pattern}:\n${greeting}`);
    return found;
  };
  const caller: Caller = {
    url: printed(/Berth runs: (\S+)/),
    orgId: printed(/\b(org_[a-z2-7]+)/),
    projectId: printed(/\b(prj_[a-z2-7]+)/),
    token: printed(/\b(brt_\w+)/),
  };
  return {
    ...caller,
    dataFolder,
    qemuPid: async (sandboxId) => {
      const [pid, ...others] = await processesOfVm(sandboxId);
      assert.ok(
        pid !== undefined && others.length === 0,
        `${sandboxId} has the processes ${[pid, ...others].join(', ')}`,
      );
      return pid;
    },
    end: async () => {
      for (const sandbox of await listSandboxes(caller)) await destroySandbox(caller, sandbox.id);
      const ended = once(supervisor, 'exit');
      const down = spawn(join(CHECKOUT, 'berth'), ['down', '--data-dir', dataFolder], { stdio: 'ignore' });
      const [code] = (await once(down, 'exit')) as [number | null];
      assert.equal(code, 0, 'berth down failed');
      await ended;
      assert.deepEqual(await leftoversOf(dataFolder), []);
      await rm(dataFolder, { recursive: true, force: true });
    },
  };
}

/** Creates an API key of the operator; resolves with its token. */
export async function createKey({ dataFolder }: Instance, name: string): Promise<string> {
  const words = ['keys', 'create', '--name', name, '--data-dir', dataFolder];
  const { stdout } = await promisify(execFile)(join(CHECKOUT, 'berth'), words);
  return /brt_\w+/.exec(stdout)?.[0] ?? '';
}

/** Resolves with stdout up to the end of the greeting; rejects with all output on an exit. */
function greetingOf(supervisor: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let greeting = '';
    let progress = '';
    const giveUp = (why: string): void => {
      clearTimeout(deadline);
      supervisor.kill();
      reject(new Error(`berth up ${why}:\n${progress}${greeting}`));
    };
    const deadline = setTimeout(
      () => giveUp(`printed no address within ${START_DEADLINE_MS / 1_000} s`),
      START_DEADLINE_MS,
    );
    supervisor.stderr?.setEncoding('utf8').on('data', (text: string) => (progress = (progress + text).slice(-20_000)));
    supervisor.stdout?.setEncoding('utf8').on('data', (text: string) => {
      greeting += text;
      if (!greeting.includes('berth down')) return;
      clearTimeout(deadline);
      resolve(greeting);
    });
    supervisor.once('error', (error) => giveUp(`could not be started (${error.message})`));
    supervisor.once('exit', (code) => giveUp(`ended with ${code}`));
  });
}
