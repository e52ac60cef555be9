// Steps of the demo: each is one timed call of the public API with a checked response. Defines the
// commands in the sandbox and the expected output.
import { setTimeout as delay } from 'node:timers/promises';
import { EXEC_LIMITS } from '@berth/contract/route/limits.ts';
import type { ExecResult } from '@berth/contract/commands/exec.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import type { Progress } from '../output/progress.ts';
import type { PublicApi } from './public-api.ts';

export interface StepResult {
  name: string;
  tookMs: number;
  /** Result, for people. */
  shown: string;
  /** The deviation from the expected result; null if none. */
  fault: string | null;
}

const RUNNING_DEADLINE_MS = 120_000;
const DELETED_DEADLINE_MS = 60_000;
/** Ten calls per second is the sustained rate limit of a credential. */
const POLL_MS = 100;

interface Outcome {
  shown: string;
  fault: string | null;
}

/**
 * Runs all steps; a failing one does not prevent the sandbox's destroy. Never rejects because of an
 * API response.
 */
export async function demoSteps(api: PublicApi, progress: Progress, signal: AbortSignal): Promise<StepResult[]> {
  const results: StepResult[] = [];
  const step = async (name: string, work: () => Promise<Outcome>): Promise<boolean> => {
    const startedAt = performance.now();
    const outcome = await progress.step(name, async () => {
      try {
        return await work();
      } catch (error) {
        return { shown: '', fault: (error as Error).message };
      }
    });
    results.push({ name, tookMs: performance.now() - startedAt, ...outcome });
    return outcome.fault === null;
  };
  let sandbox: Sandbox | null = null;
  const created = await step('create a sandbox', async () => {
    const orgId = await api.firstOrgId(signal);
    const projectId = await api.firstProjectId(orgId, signal);
    // An interruption must not lose the id of a sandbox that exists.
    sandbox = await api.createSandbox(orgId, { projectId, agent: 'agent_one', name: 'demo' });
    sandbox = await settled(api, sandbox, ['running', 'ready', 'failed'], RUNNING_DEADLINE_MS, signal);
    const { allocated_vcpu: vcpu, allocated_memory_gb: memory, allocated_disk_gb: disk } = sandbox;
    const size = `${vcpu} vCPU, ${memory} GB, ${disk} GB disk`;
    const fault = sandbox.status === 'failed' ? `failed: ${sandbox.statusReason?.message ?? 'no reason given'}` : null;
    return { shown: `${sandbox.id} is ${sandbox.status} (${size})`, fault };
  });
  const { id } = (sandbox ?? {}) as { id?: string };
  if (created && id !== undefined) {
    for (const { name, command, timeoutSeconds, check } of COMMANDS)
      await step(name, async () => check(await api.exec(id, command, timeoutSeconds, signal)));
  }
  if (id !== undefined) {
    await step('destroy the sandbox', async () => {
      // After an interruption too: VMs outlive the service.
      const patience = AbortSignal.timeout(2 * DELETED_DEADLINE_MS);
      const destroyed = await api.destroySandbox(id, patience);
      const gone = await settled(api, destroyed, ['deleted'], DELETED_DEADLINE_MS, patience);
      return { shown: `${gone.id} is ${gone.status}`, fault: null };
    });
  }
  return results;
}

const MEBIBYTE = 1_048_576;

const COMMANDS: { name: string; command: string; timeoutSeconds: number; check: (result: ExecResult) => Outcome }[] = [
  {
    name: 'uname, id, nproc, free',
    command: 'uname -a; id; nproc; free -m',
    timeoutSeconds: 30,
    check: (result) =>
      expecting(
        result,
        result.stdout.trimEnd(),
        { exitCode: 0, timedOut: false, truncated: false },
        /^Linux .*\nuid=1000\(berth\) /,
      ),
  },
  {
    name: 'a command that fails',
    command: 'echo out of order >&2; exit 3',
    timeoutSeconds: 30,
    check: (result) =>
      expecting(result, `exit code ${result.exitCode}, stderr: ${result.stderr.trim()}`, {
        exitCode: 3,
        timedOut: false,
        truncated: false,
      }),
  },
  {
    name: 'a command that times out',
    command: 'echo before; sleep 60; echo after',
    timeoutSeconds: 1,
    check: (result) =>
      expecting(
        result,
        `exit code ${result.exitCode}, timed out, kept: ${result.stdout.trim()}`,
        { exitCode: 124, timedOut: true, truncated: false },
        /^before\n$/,
      ),
  },
  {
    name: 'a command that prints 1 MB',
    command: `head -c ${MEBIBYTE} /dev/zero | tr '\\0' x; echo end`,
    timeoutSeconds: 60,
    check: (result) => {
      const bytes = Buffer.byteLength(result.stdout);
      const shown = `kept the last ${bytes} bytes, truncated: ${result.truncated}`;
      return bytes === EXEC_LIMITS.outputBytes
        ? expecting(result, shown, { exitCode: 0, timedOut: false, truncated: true }, /xend\n$/)
        : { shown, fault: `${bytes} bytes were kept, not ${EXEC_LIMITS.outputBytes}` };
    },
  },
];

function expecting(result: ExecResult, shown: string, wanted: Partial<ExecResult>, stdout = /^/): Outcome {
  const wrong = Object.entries(wanted).find(([key, value]) => result[key as keyof ExecResult] !== value);
  if (wrong !== undefined) {
    return {
      shown,
      fault:
        `${wrong[0]} is ${String(result[wrong[0] as keyof ExecResult])}, not ${String(wrong[1])}; ` +
        `stderr: ${result.stderr.slice(-500)}`,
    };
  }
  return { shown, fault: stdout.test(result.stdout) ? null : `unexpected output: ${result.stdout.slice(0, 500)}` };
}

async function settled(
  api: PublicApi,
  sandbox: Sandbox,
  statuses: readonly string[],
  limitMs: number,
  signal: AbortSignal,
): Promise<Sandbox> {
  const deadline = performance.now() + limitMs;
  let now = sandbox;
  while (!statuses.includes(now.status)) {
    if (performance.now() > deadline) throw new Error(`the sandbox is still ${now.status} after ${limitMs / 1000} s`);

    await delay(POLL_MS, undefined, { signal });
    now = await api.getSandbox(sandbox.id, signal);
  }
  return now;
}
