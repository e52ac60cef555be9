// Actions on sandboxes, one or many.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { BerthError, type api } from '@berth/sdk';
import { pause } from '../rules/page/pause.ts';
import type { SandboxAction } from '../rules/sandbox-actions.ts';
import { berth } from '../session/client.ts';
import { useUnloadGuard } from '../session/input.ts';
import { queries } from './client.ts';
import { sandboxQuery, storeSandbox } from './sandboxes.ts';

const PARALLEL = 4;

const ASYNC = { headers: { Prefer: 'respond-async' } } as const;
type Size = api.ResizeSandboxRequest;
type Call = { path: { sandboxId: string } } & typeof ASYNC;

const CALLS: Readonly<Record<SandboxAction, (call: Call, size: Size) => Promise<{ sandbox: api.Sandbox }>>> = {
  sleep: (call) => berth.raw.sleepSandbox(call),
  wake: (call) => berth.raw.wakeSandbox(call),
  resize: (call, body) => berth.raw.resizeSandbox({ ...call, body }),
  renew: ({ path }) => berth.raw.renewSandbox({ path }),
  destroy: (call) => berth.raw.destroySandbox(call),
};

export async function runAction(sandboxId: string, action: SandboxAction, size: Size = {}): Promise<void> {
  try {
    storeSandbox((await unhurried(() => CALLS[action]({ path: { sandboxId }, ...ASYNC }, size))).sandbox);
  } catch (error) {
    // The refusal may come from a status that the page has not seen yet.
    void queries.invalidateQueries({ queryKey: sandboxQuery(sandboxId).queryKey });
    throw error;
  }
}

/**
 * Runs an action on many sandboxes, a few at a time, as fast as the limit of requests allows. Its
 * result are the failures.
 */
export function useSandboxActions() {
  const [done, setDone] = useState(0);
  const run = useMutation({
    mutationFn: async ({ action, sandboxes }: { action: SandboxAction; sandboxes: readonly api.Sandbox[] }) => {
      const failures: { sandbox: api.Sandbox; error: Error }[] = [];
      const waiting = sandboxes.values();
      setDone(0);
      const work = async (): Promise<void> => {
        for (const sandbox of waiting) {
          const call = { path: { sandboxId: sandbox.id }, ...ASYNC };
          try {
            storeSandbox((await unhurried(() => CALLS[action](call, {}))).sandbox);
          } catch (error) {
            failures.push({ sandbox, error: error as Error });
          }
          setDone((before) => before + 1);
        }
      };
      await Promise.all(Array.from({ length: PARALLEL }, work));
      return failures;
    },
  });
  useUnloadGuard(run.isPending);
  return { run, done };
}

/** Repeats a call that was refused for its rate, and so did nothing. */
async function unhurried<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof BerthError) || error.code !== 'rate_limited') throw error;
      await pause((error.retryAfter ?? 1) * 1_000);
    }
  }
}
