// The caller's sign-ins: list, end one, end all others. Nothing caches a sign-in, so its tokens,
// cookie and previews are refused by every replica from the commit on; open streams end at their
// next recheck.
import type { PageQuery } from '@berth/contract/route/page.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import type { ActivityActor, ActivitySubject } from '../../store/activity/activity.ts';
import {
  deleteOtherSignIns,
  deleteSignIn,
  listSignIns as selectSignIns,
  type SignInRow,
} from '../../store/access/sign-ins.ts';
import { isId } from '../../store/database/ids.ts';
import type { Database, DatabaseTransaction } from '../../store/database/schema.ts';
import { lockUser } from '../../store/people/accounts.ts';
import { denyApprovedDevices } from '../../store/people/sign-in.ts';
import type { ServiceContext } from '../context/context.ts';
import { recordInOrgs } from './records.ts';

export type { SignInRow };

/** A signed-in person: by an access token or, on the pages, by the cookie. */
interface SignedIn {
  kind: 'session';
  id: string;
  userId: string;
  requestId: string | null;
  loginId: string;
}

/** The person's sign-ins, newest first. */
export async function listSignIns(
  { db }: Pick<ServiceContext, 'db'>,
  { userId }: Pick<SignedIn, 'userId'>,
  query: PageQuery,
): Promise<{ rows: SignInRow[]; fields: PageFields }> {
  return await readInPages('signIns', query, (page) => selectSignIns(db, userId, page));
}

/** Ends a sign-in of the person. Throws `sign_in_not_found`, also for that of another person. */
export async function endSignIn(
  { db }: Pick<ServiceContext, 'db'>,
  actor: SignedIn,
  signInId: string,
): Promise<SignInRow> {
  return await db.transaction().execute(async (trx) => {
    const ended = isId('signIn', signInId) ? await deleteSignIn(trx, actor.userId, signInId) : undefined;
    if (ended === undefined)
      throw new CodedError('sign_in_not_found', 'you have no sign-in with this id, or it has ended');
    await record(trx, actor.userId, actorOf(actor), {
      subject: { kind: 'sign_in', id: signInId },
      details: { count: 1 },
    });
    return ended;
  });
}

/** Ends a sign-in whose spent refresh token was used again: somebody else may hold a copy. */
export async function endReusedSignIn(
  trx: DatabaseTransaction,
  { userId, loginId }: { userId: string; loginId: string },
): Promise<void> {
  if ((await deleteSignIn(trx, userId, loginId)) === undefined) return;
  const actor = { kind: 'system', id: null, userId: null } as const;
  const details = { count: 1, reason: 'a refresh token was used again after it was spent' };
  await record(trx, userId, actor, { subject: { kind: 'sign_in', id: loginId }, details });
}

/** Ends the person's other sign-ins. Device approvals would become sign-ins, so they end too. */
export async function endOtherSignIns({ db }: Pick<ServiceContext, 'db'>, actor: SignedIn): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    // A new password takes the locks of sessions and devices in the other order.
    await lockUser(trx, actor.userId);
    await denyApprovedDevices(trx, actor.userId);
    const count = await deleteOtherSignIns(trx, actor.userId, actor.loginId);
    if (count > 0) {
      await record(trx, actor.userId, actorOf(actor), {
        subject: { kind: 'user', id: actor.userId },
        details: { count },
      });
    }
    return count;
  });
}

function actorOf({ kind, id, userId, requestId }: SignedIn): ActivityActor {
  return { kind, id, userId, requestId };
}

async function record(
  trx: Database,
  userId: string,
  actor: ActivityActor,
  entry: { subject: ActivitySubject; details: Record<string, unknown> },
): Promise<void> {
  await recordInOrgs(trx, { userId, actor }, { kind: 'sign_in_ended', ...entry });
}
