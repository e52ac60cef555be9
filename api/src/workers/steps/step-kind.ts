// The kinds of durable steps and their ids. An id says its kind and subject, so enqueueing a step
// twice yields one step.
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { LifecycleStep, LifecycleStepKind } from '../../services/context/lifecycle-port.ts';

export const INVITATION_MAIL = 'invitation-mail';
export type StepKind = LifecycleStepKind | typeof INVITATION_MAIL;

/** Kinds that are at work on a sandbox under its epoch in force; a clone outlives a resize's new epoch. */
export const EPOCH_STEP_KINDS = ['provision', 'sleep', 'wake', 'resize', 'destroy'] as const;

const STEP_OF_STATUS: { readonly [status in SandboxStatus]?: LifecycleStepKind } = {
  provisioning: 'provision',
  sleeping: 'sleep',
  waking: 'wake',
  destroying: 'destroy',
};

/** The step that is at work on the sandbox by its row; undefined when nothing is under way. */
export function stepKindOf(sandbox: { status: SandboxStatus; resizing: boolean }): LifecycleStepKind | undefined {
  return STEP_OF_STATUS[sandbox.status] ?? (sandbox.resizing ? 'resize' : undefined);
}

/** Id of a lifecycle step; store/sandboxes/lifecycle.ts builds the same in SQL. */
export function stepId(kind: LifecycleStepKind, { sandboxId, epoch }: LifecycleStep): string {
  return `${kind}:${sandboxId}:${epoch}`;
}
