// The durable step that mails an invitation: a fresh token, the mail server, the note that it went
// out. At least once: killed between the last two, it mails again, and the newer message's link is
// the one that works. The step's row never holds a token. Safe to run again from the start at any
// point.
import { setTimeout as delay } from 'node:timers/promises';
import { noteInvitationSent, prepareInvitationMail } from '../../services/orgs/invitation-mail.ts';
import type { Mailer } from '../../services/context/mail-port.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { untilCommitted, worthLogging, type StepContext } from '../steps/step-context.ts';

/** Input of the step. Never holds a token. */
export interface InvitationMailStep {
  invitationId: string;
  /** Milliseconds since 1970. */
  askedAtMs: number;
}

export interface MailPatience {
  /** Pause after the first failure; each is twice as long as the one before. */
  firstPauseMs: number;
  longestPauseMs: number;
  /** For how long it is tried. A step that starts later than that tries once. */
  giveUpAfterMs: number;
}

export const MAIL_PATIENCE: MailPatience = {
  firstPauseMs: 2_000,
  longestPauseMs: 30 * 60_000,
  giveUpAfterMs: 24 * 3_600_000,
};

export interface MailStepContext extends StepContext {
  mailer: Mailer;
  /** Origin of the link. */
  publicUrl: string;
  mailPatience: MailPatience;
}

/**
 * `void`: the invitation is not pending any more, or its mail went out. `overtaken`: another run of
 * the step sent a newer one.
 */
type Outcome = 'sent' | 'void' | 'overtaken' | 'given up';

/** Mails a pending invitation whose mail did not go out yet. */
export async function invitationMail(context: MailStepContext, step: InvitationMailStep): Promise<void> {
  const outcome = await mailUntilSent(context, step);
  context.log.debug({ invitationId: step.invitationId, outcome }, 'the mail of an invitation is done');
}

async function mailUntilSent(
  context: MailStepContext,
  { invitationId, askedAtMs }: InvitationMailStep,
): Promise<Outcome> {
  const { db, log, mailer, mailPatience, publicUrl, stopping } = context;
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
      // From here on only the database can fail: that is no reason to send another mail.
      return await noteSent(context, invitationId, prepared.tokenSha256);
    } catch (error) {
      stopping.throwIfAborted();
      if (Date.now() >= askedAtMs + mailPatience.giveUpAfterMs) {
        log.error(
          { err: error, invitationId, attempt },
          'the mail of an invitation could not be sent and is given up; invite again',
        );
        return 'given up';
      }
      if (worthLogging(attempt))
        log.warn({ err: error, invitationId, attempt }, 'the mail of an invitation could not be sent: trying again');
    }
    await pauseAfter(attempt, mailPatience, stopping);
  }
}

async function noteSent(context: MailStepContext, invitationId: string, tokenSha256: Buffer): Promise<Outcome> {
  const noted = await untilCommitted(context, 'noting that an invitation was mailed', () =>
    context.db.transaction().execute(async (trx) => {
      const first = await noteInvitationSent(trx, invitationId, tokenSha256);
      crashPoint('invitation-mail:noted-written');
      return first;
    }),
  );
  crashPoint('invitation-mail:noted');
  return noted ? 'sent' : 'overtaken';
}

/**
 * With a quarter of jitter, so that mails that wait for one server do not come to it all at once.
 * Ends early when the process stops.
 */
async function pauseAfter(
  attempt: number,
  { firstPauseMs, longestPauseMs }: MailPatience,
  stopping: AbortSignal,
): Promise<void> {
  const waitMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempt, 30)) * (0.75 + Math.random() * 0.5);
  try {
    await delay(waitMs, undefined, { signal: stopping });
  } catch (error) {
    if (!stopping.aborted) throw error;
  }
}
