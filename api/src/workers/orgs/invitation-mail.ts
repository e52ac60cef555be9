// Durable step: mails an invitation. Creates a fresh token, sends the mail, then records it as
// sent. At least once: after a kill before the record it mails again, and only the newer link
// works. Can be repeated from the start at any point.
import { setTimeout as delay } from 'node:timers/promises';
import { recordInvitationSent, prepareInvitationMail } from '../../services/orgs/invitation-mail.ts';
import type { Mailer } from '../../services/context/mail-port.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { untilCommitted, worthLogging, type StepContext } from '../steps/step-context.ts';

/** Input of the step. Never holds a token. */
export interface InvitationMailStep {
  invitationId: string;
  /** Milliseconds since 1970. */
  askedAtMs: number;
}

export interface MailRetryPolicy {
  /** Pause after the first failure; doubles with each failure. */
  firstPauseMs: number;
  longestPauseMs: number;
  /** Time limit of the retries. A step that starts later tries once. */
  giveUpAfterMs: number;
}

export const MAIL_RETRY_POLICY: MailRetryPolicy = {
  firstPauseMs: 2_000,
  longestPauseMs: 30 * 60_000,
  giveUpAfterMs: 24 * 3_600_000,
};

export interface MailStepContext extends StepContext {
  mailer: Mailer;
  /** Origin of the link. */
  publicUrl: string;
  mailRetryPolicy: MailRetryPolicy;
}

/**
 * `void`: the invitation is no longer pending, or its mail was sent. `overtaken`: another run of
 * the step sent a newer mail.
 */
type Outcome = 'sent' | 'void' | 'overtaken' | 'given up';

/** Mails a pending invitation whose mail was not sent yet. */
export async function invitationMail(context: MailStepContext, step: InvitationMailStep): Promise<void> {
  const outcome = await mailUntilSent(context, step);
  context.log.debug({ invitationId: step.invitationId, outcome }, 'invitation mail finished');
}

async function mailUntilSent(
  context: MailStepContext,
  { invitationId, askedAtMs }: InvitationMailStep,
): Promise<Outcome> {
  const { db, log, mailer, mailRetryPolicy, publicUrl, stopping } = context;
  for (let attempt = 0; ; attempt += 1) {
    stopping.throwIfAborted();
    try {
      const prepared = await db.transaction().execute(async (trx) => {
        const made = await prepareInvitationMail(trx, publicUrl, invitationId);
        crashPoint('invitation-mail:token-written');
        return made;
      });
      crashPoint('invitation-mail:token-committed');
      if (prepared === null) return 'void';
      await mailer.send(prepared.message, stopping);
      crashPoint('invitation-mail:sent');
      // Only the database can fail from here on: do not send another mail.
      return await recordSent(context, invitationId, prepared.tokenSha256);
    } catch (error) {
      stopping.throwIfAborted();
      if (Date.now() >= askedAtMs + mailRetryPolicy.giveUpAfterMs) {
        log.error({ err: error, invitationId, attempt }, 'invitation mail could not be sent: giving up; invite again');
        return 'given up';
      }
      if (worthLogging(attempt))
        log.warn({ err: error, invitationId, attempt }, 'invitation mail could not be sent: retrying');
    }
    await pauseAfter(attempt, mailRetryPolicy, stopping);
  }
}

async function recordSent(context: MailStepContext, invitationId: string, tokenSha256: Buffer): Promise<Outcome> {
  const noted = await untilCommitted(context, 'recording a sent invitation mail', () =>
    context.db.transaction().execute(async (trx) => {
      const first = await recordInvitationSent(trx, invitationId, tokenSha256);
      crashPoint('invitation-mail:noted-written');
      return first;
    }),
  );
  crashPoint('invitation-mail:noted');
  return noted ? 'sent' : 'overtaken';
}

/**
 * Adds a quarter of jitter, so that waiting mails do not reach a server all at once. Ends early
 * when the process stops.
 */
async function pauseAfter(
  attempt: number,
  { firstPauseMs, longestPauseMs }: MailRetryPolicy,
  stopping: AbortSignal,
): Promise<void> {
  const waitMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempt, 30)) * (0.75 + Math.random() * 0.5);
  try {
    await delay(waitMs, undefined, { signal: stopping });
  } catch (error) {
    if (!stopping.aborted) throw error;
  }
}
