// Kinds and ids of durable steps. An id contains kind and subject, so enqueueing a step twice
// yields one step.
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { LifecycleStep, LifecycleStepKind } from '../../services/context/lifecycle-port.ts';

export const INVITATION_MAIL = 'invitation-mail';
export type StepKind = LifecycleStepKind | typeof INVITATION_MAIL;

/** Kinds bound to a sandbox's current epoch; a clone outlives the new epoch of a resize. */
export const EPOCH_STEP_KINDS = ['provision', 'sleep', 'wake', 'resize', 'destroy'] as const;

const STEP_OF_STATUS: { readonly [status in SandboxStatus]?: LifecycleStepKind } = {
  provisioning: 'provision',
  sleeping: 'sleep',
  waking: 'wake',
  destroying: 'destroy',
};

/** Kind of the step in progress on a sandbox, by its row; undefined if none. */
export function stepKindOf(sandbox: { status: SandboxStatus; resizing: boolean }): LifecycleStepKind | undefined {
  return STEP_OF_STATUS[sandbox.status] ?? (sandbox.resizing ? 'resize' : undefined);
}

/** Id of a lifecycle step. store/sandboxes/lifecycle.ts builds the same id in SQL. */
export function stepId(kind: LifecycleStepKind, { sandboxId, epoch }: LifecycleStep): string {
  return `${kind}:${sandboxId}:${epoch}`;
}
