// The page of a person's sign-ins, which ends one or all others.
import { z } from 'zod';
import { CodedError } from '../rules/coded-error.ts';
import { html, type Html } from '../rules/html.ts';
import { endOtherSignIns, endSignIn, listSignIns, type SignInRow } from '../services/access/sign-ins.ts';
import { unseen } from './parts/fields.ts';
import { form, hidden, readForm } from './parts/form.ts';
import { signInPath } from './sign-in.ts';
import { redirect, shown, type Page } from './parts/site.ts';

const PATH = '/sign-ins';
/** Limit on the name of a program, which is chosen by the program. */
const PROGRAM_CHARACTERS = 120;

export const signInsPage: Page = {
  path: PATH,
  get: async ({ context }, { visitor }) => {
    if (visitor === null) return redirect(signInPath(PATH));
    const { rows } = await listSignIns(context, { userId: visitor.user.id }, {});
    return shown(
      'Your sign-ins',
      html`<p>Browsers and devices that can act as you. Ending a sign-in takes effect at once.</p>
        <ul class="sign-ins">
          ${rows.map((row) => entry(row, row.id === visitor.loginId))}
        </ul>
        ${rows.length < 2 ? '' : form(PATH, html`<button type="submit">End all others</button>`)}
        <p class="aside">API keys and agent tokens stay valid; revoke them on their own.</p>`,
    );
  },
  post: async ({ context }, { visitor, requestId, form: sent }) => {
    if (visitor === null) return redirect(signInPath(PATH));
    const { loginId, user } = visitor;
    const actor = { kind: 'session', id: loginId, userId: user.id, requestId, loginId } as const;
    const { id = '' } = readForm(z.object({ id: unseen }), sent).read ?? {};
    if (id === '') {
      await endOtherSignIns(context, actor);
      return redirect(PATH);
    }
    await endSignIn(context, actor, id).catch((error: unknown) => {
      // Ended in the meantime.
      if (!(error instanceof CodedError && error.code === 'sign_in_not_found')) throw error;
    });
    return redirect(PATH);
  },
};

function entry(row: SignInRow, current: boolean): Html {
  const program = row.user_agent ?? 'Unknown program';
  const end = form(PATH, html`${hidden('id', row.id)}<button type="submit" class="second">End</button>`);
  return html`<li>
    <p>
      <strong>${program.slice(0, PROGRAM_CHARACTERS)}</strong>${current ? ' (this browser)' : ''}<br />
      ${row.address === null ? '' : html`from ${row.address}, `}signed in ${minute(row.created_at)}, last used
      ${minute(row.last_used_at)}
    </p>
    ${current ? '' : end}
  </li>`;
}

function minute(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
