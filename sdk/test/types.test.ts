// Types of the SDK, checked by the compiler (npm run check:types).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Agent } from '@berth/contract/sandboxes/fields.ts';
import type { Sandbox as ContractSandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import type { SandboxStatus as ContractStatus } from '@berth/contract/sandboxes/state.ts';
import type { Berth, BerthError, CommandResult, ErrorCode, Sandbox, SandboxData, SandboxStatus } from '../src/index.ts';

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- compares two types
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Takes<A, B> = [B] extends [A] ? true : false;
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the constraint is the check
const holds = <_T extends true>(): void => undefined;

async function use(berth: Berth, error: BerthError): Promise<void> {
  const sandbox = await berth.sandboxes.create({ agent: 'agent_one', metadata: { a: 1, b: 'x', c: true } });
  holds<Same<typeof sandbox, Sandbox>>();
  // @ts-expect-error an agent that there is not
  await berth.sandboxes.create({ agent: 'agent_nine' });
  await berth.sandboxes.create();
  await berth.sandboxes.getOrCreate({ endUserId: 'u' });
  // @ts-expect-error a key is needed
  await berth.sandboxes.getOrCreate({ agent: 'agent_one' });
  // @ts-expect-error a field that there is not
  await berth.sandboxes.create({ agent: 'agent_one', colour: 'red' });
  // @ts-expect-error labels are flat
  await berth.sandboxes.create({ agent: 'agent_one', metadata: { a: { b: 1 } } });

  holds<Same<Awaited<ReturnType<typeof sandbox.exec>>, CommandResult>>();
  const { exitCode } = await sandbox.exec('true', { timeoutSeconds: 5, signal: AbortSignal.timeout(1) }).orThrow();
  holds<Same<typeof exitCode, number>>();
  // @ts-expect-error a command is a text
  await sandbox.exec(['ls']);

  await useProcesses(sandbox, { cursor: () => Promise.resolve(undefined), append: () => Promise.resolve() });

  await sandbox.waitUntil('ready');
  await sandbox.waitUntil(['stopped', 'of a later version']);
  await sandbox.waitUntil(({ status }) => status !== 'provisioning');
  await sandbox.files.write('a', new Uint8Array());
  // @ts-expect-error numbers are no content
  await sandbox.files.write('a', 1);
  await using kept = sandbox;
  void kept;

  // Response enums accept values of later versions and suggest known ones.
  const { status } = sandbox;
  if (status === 'of a later version') return;
  const known = 'ready' as const;
  holds<Takes<typeof status, typeof known>>();
  holds<Takes<BerthError['code'], ErrorCode>>();
  switch (error.code) {
    case 'rate_limited':
    case 'timeout':
    case 'of a later version':
      break;
    default:
  }

  const { sandboxes } = await berth.raw.listSandboxes({ path: { orgId: 'org_1' }, query: { limit: 5 } });
  holds<Same<(typeof sandboxes)[number], SandboxData>>();
  // @ts-expect-error the path needs the org
  await berth.raw.listSandboxes({ path: {} });
  // @ts-expect-error a limit is a number
  await berth.raw.listSandboxes({ path: { orgId: 'org_1' }, query: { limit: '5' } });
}

/** As in the README. */
async function useProcesses(
  sandbox: Sandbox,
  store: { cursor(): Promise<string | undefined>; append(bytes: Uint8Array, cursor: string): Promise<void> },
): Promise<void> {
  const server = await sandbox.spawn('npm run dev', { name: 'web', env: { PORT: '3000' } });
  for await (const { stream, text } of server.output()) {
    holds<Takes<typeof stream, 'stdout'>>();
    if (text.includes('listening')) break;
  }
  await server.kill();
  const { exitCode, signal, reason } = await server.exited;
  holds<Same<typeof exitCode, number | null>>();
  holds<Takes<typeof signal, string | null>>();
  holds<Takes<typeof reason, 'timed_out' | 'of a later version' | null>>();
  await server.remove();
  for await (const chunk of server.output({ since: await store.cursor() }))
    await store.append(chunk.bytes, chunk.cursor);
  await sandbox.exec('npm run build', { onStdout: (text) => process.stdout.write(text) });
  await using program = await sandbox.spawn(['node', 'a.js'], { stdin: true });
  await program.stdin.getWriter().write('x');
  // @ts-expect-error a command is either a line or a list
  await sandbox.spawn({ command: 'x' });
  // @ts-expect-error a signal that there is not
  await server.kill('SIGNONE');
}

test('SDK types match the contract and accept later values', () => {
  holds<Same<SandboxStatus, ContractStatus>>();
  // SDK types accept all responses of the contract.
  type Optional = 'pendingAllocation' | 'startDelays';
  holds<Takes<Omit<SandboxData, Optional>, Omit<ContractSandbox, Optional>>>();
  holds<Same<keyof SandboxData, keyof ContractSandbox>>();
  holds<Takes<NonNullable<Parameters<Berth['sandboxes']['create']>[0]>['agent'], Agent>>();
  assert.equal(typeof use, 'function');
});
