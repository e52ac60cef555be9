// Wire format of sign-ins. None holds a token.
import { endOtherSignIns, endSignIn, listSignIns, type SignInView } from '@berth/contract/access/sign-ins.ts';
import * as signIns from '../../services/access/sign-ins.ts';
import { bind } from '../../call/bind.ts';

export const signInRoutes = [
  bind(listSignIns, async (context, { actor, query }) => {
    const { rows, fields } = await signIns.listSignIns(context, actor, query);
    return { signIns: rows.map((row) => viewSignIn(row, actor.loginId)), ...fields };
  }),
  bind(endSignIn, async (context, { actor, params }) => ({
    signIn: viewSignIn(await signIns.endSignIn(context, actor, params.signInId), actor.loginId),
  })),
  bind(endOtherSignIns, async (context, { actor }) => ({ ended: await signIns.endOtherSignIns(context, actor) })),
];

function viewSignIn(row: signIns.SignInRow, currentId: string): SignInView {
  return {
    id: row.id,
    userAgent: row.user_agent,
    address: row.address,
    createdAt: row.created_at.toISOString(),
    lastUsedAt: row.last_used_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
    current: row.id === currentId,
  };
}
