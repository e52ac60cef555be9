// `berth sign-in ls` and `end`: browsers and devices in which the user is signed in.
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { confirmLoss } from '../interaction/prompt.ts';
import { since } from '../output/time.ts';
import { checkResourceId } from '../service/resource-id.ts';

export async function listSignIns({ connect, out, signal }: CliContext): Promise<void> {
  const { berth } = await connect();
  const answer = await berth.raw.listSignIns({ signal });
  if (out.json) return out.object(answer);
  out.table(
    [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'program', value: ({ userAgent }) => userAgent ?? '' },
      { title: 'address', value: ({ address }) => address ?? '' },
      { title: 'signed in', value: ({ createdAt }) => since(createdAt) },
      { title: 'last used', value: ({ lastUsedAt }) => since(lastUsedAt) },
      { title: 'current', value: ({ current }) => (current ? 'yes' : '') },
    ],
    answer.signIns,
    'no sign-ins',
  );
}

export async function endSignIn(context: CliContext, { args: [typed], options }: Input<{ yes?: true }>): Promise<void> {
  const { connect, out, signal } = context;
  const { berth } = await connect();
  const signInId = checkResourceId('sign-in', typed);
  await confirmLoss(context, `End the sign-in ${signInId}? Its browser or device must sign in again.`, options);
  const answer = await berth.raw.endSignIn({ path: { signInId }, signal });
  if (out.json) out.object(answer);
  else out.line(`ended the sign-in ${signInId}`);
}
