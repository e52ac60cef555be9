// Enqueues durable steps in the transaction of their intent, and starts them right after its
// commit.
import type { LifecycleQueue, LifecycleStep, LifecycleStepKind } from '../../services/context/lifecycle-port.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import { insertStep } from '../../store/steps/steps.ts';
import type { InvitationMailStep } from '../orgs/invitation-mail.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { INVITATION_MAIL, stepId } from '../steps/step-kind.ts';

export class DurableQueue implements LifecycleQueue {
  readonly #wake: () => void;

  /** `wake` starts waiting steps; it never throws. */
  constructor(wake: () => void) {
    this.#wake = wake;
  }

  async enqueue(trx: DatabaseTransaction, kind: LifecycleStepKind, step: LifecycleStep): Promise<void> {
    await insertStep(trx, {
      id: stepId(kind, step),
      kind,
      subject: { table: 'sandbox', id: step.sandboxId },
      input: { sandboxId: step.sandboxId, epoch: step.epoch },
    });
    crashPoint(`${kind}:enqueued`);
  }

  async enqueueInvitationMail(trx: DatabaseTransaction, invitationId: string): Promise<void> {
    const input: InvitationMailStep = { invitationId, askedAtMs: Date.now() };
    await insertStep(trx, {
      id: `${INVITATION_MAIL}:${invitationId}`,
      kind: INVITATION_MAIL,
      subject: { table: 'invitation', id: invitationId },
      input,
    });
    crashPoint('invitation-mail:enqueued');
  }

  started(): void {
    crashPoint('step:committed');
    this.#wake();
  }
}
