// The passkeys of the account page: their list, and the page that adds one.
import { NAME_CHARACTERS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { html, type Html } from '../rules/html.ts';
import type { Passkey } from '../services/people/passkeys-port.ts';
import { passkeyCredential, personName, unseen } from './parts/fields.ts';
import { EMPTY_FORM, field, form, hidden, readForm } from './parts/form.ts';
import { redirect, shown, type PageAnswer, type Site, type SiteRequest, type SignedInVisitor } from './parts/site.ts';
import { browserSecret, knownBrowser, passkeyForm } from './passkey-form.ts';

const PATH = '/account';
export const PASSKEY_ACTIONS = ['begin_passkey', 'add_passkey', 'rename_passkey', 'remove_passkey'] as const;
type PasskeyAction = (typeof PASSKEY_ACTIONS)[number];

const schema = z.object({ sealed: unseen, credential: passkeyCredential, id: unseen });
const nameSchema = z.object({ name: personName });
const DEFAULT_NAME = 'Passkey';

/** Carries out an action; the caller required a recent sign-in. */
export async function changePasskeys(
  site: Site,
  request: SiteRequest,
  { user }: SignedInVisitor,
  action: PasskeyAction,
  note: (change: 'passkey_added' | 'passkey_removed') => void,
): Promise<PageAnswer> {
  const { passkeys } = site.signIn;
  const { sealed = '', credential = '', id = '' } = readForm(schema, request.form).read ?? {};
  const name = readForm(nameSchema, request.form).read?.name ?? DEFAULT_NAME;
  switch (action) {
    case 'begin_passkey':
      return await addForm(site, request, user);
    case 'add_passkey':
      await passkeys.register(user.id, { sealed, credential, name }, knownBrowser(site, request) ?? '');
      note('passkey_added');
      return redirect(PATH);
    case 'rename_passkey':
      await passkeys.rename(user.id, id, name);
      return redirect(PATH);
    case 'remove_passkey':
      if (await passkeys.remove(user.id, id)) note('passkey_removed');
      return redirect(PATH);
    default:
      return action satisfies never;
  }
}

async function addForm(
  site: Site,
  request: SiteRequest,
  { id: userId, email }: SignedInVisitor['user'],
): Promise<PageAnswer> {
  const browser = browserSecret(site, request);
  const ceremony = await site.signIn.passkeys.beginRegistration({ userId, email }, browser.secret);
  const fields = html`${hidden('action', 'add_passkey')}
    ${field(EMPTY_FORM, {
      name: 'name',
      label: 'Name',
      type: 'text',
      autocomplete: 'off',
      maxLength: NAME_CHARACTERS,
      hint: 'To recognize it in the list, such as the name of the device.',
      value: DEFAULT_NAME,
    })} <button type="submit">Create the passkey</button>`;
  return shown(
    'Add a passkey',
    html`<p>Your browser asks where to keep it, and for your fingerprint, face or PIN.</p>
      ${passkeyForm({ action: PATH, kind: 'create', ceremony, fields })}
      <p class="aside"><a href="${PATH}">Cancel</a></p>`,
    { cookie: browser.cookie, script: true },
  );
}

const ADD_BUTTON = html`${hidden('action', 'begin_passkey')}
  <button type="submit" class="second">Add a passkey</button>`;

export function passkeySection(passkeys: readonly Passkey[]): Html {
  return html`<h2>Passkeys</h2>
    <p>Sign in without a password, with the lock of your phone or computer, or with a security key.</p>
    ${
      passkeys.length === 0
        ? ''
        : html`<ul class="passkeys">
            ${passkeys.map(entry)}
          </ul>`
    }
    ${form(PATH, ADD_BUTTON)}`;
}

function entry({ id, name, since, lastUsedAt }: Passkey): Html {
  const fieldId = `name-${id}`;
  return html`<li>
    ${form(
      PATH,
      html`${hidden('id', id)}
        <label for="${fieldId}">Name of a passkey</label>
        <p class="hint">
          Added ${day(since)}, ${lastUsedAt === null ? 'not used yet' : `last used ${day(lastUsedAt)}`}
        </p>
        <input
          id="${fieldId}"
          name="name"
          type="text"
          maxlength="${NAME_CHARACTERS}"
          value="${name}"
          autocomplete="off"
        />
        <div class="buttons">
          <button type="submit" name="action" value="rename_passkey" class="second">Rename</button>
          <button type="submit" name="action" value="remove_passkey" class="second">Remove</button>
        </div>`,
    )}
  </li>`;
}

function day(at: Date): string {
  return at.toISOString().slice(0, 10);
}
