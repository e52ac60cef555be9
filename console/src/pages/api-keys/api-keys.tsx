// API keys of an org.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import type { api, Permission } from '@berth/sdk';
import { NAME_CHARACTERS } from '@berth/sdk/limits';
import { apiKeysQuery, createApiKey, revokeApiKey } from '../../queries/api-keys.ts';
import { KEY_PERMISSIONS, scopesOf, type KeyAccess } from '../../rules/api-keys.ts';
import { apiKeysText as text } from '../../text/api-keys.ts';
import { Check, Choices, DialogForm, SelectField, TextField, useForm } from '../../ui/forms/index.ts';
import { Button, Notice, Page, Untrusted, useDialogHost, type Column } from '../../ui/kit/index.ts';
import { Credentials } from '../credentials/credentials.tsx';
import { SecretDialog } from '../credentials/credentials.tsx';
import { Loaded, Permitted, useOrgInView } from '../frame/content.tsx';
import { MemberName } from '../members/member-name.tsx';
import css from './api-keys.module.css';

export function ApiKeysPage() {
  const { refusalOf } = useOrgInView();
  return (
    <Page
      title={text.title}
      actions={
        <Button kind="primary" icon={Plus} reason={refusalOf('api_keys.manage')} dialog={<CreateDialog />}>
          {text.createWords.submit}
        </Button>
      }
    >
      <p className={css.hint}>{text.hint}</p>
      <Permitted permission="api_keys.manage">
        <Keys />
      </Permitted>
    </Page>
  );
}

function Keys() {
  const { orgId } = useOrgInView();
  return (
    <Loaded query={useInfiniteQuery(apiKeysQuery(orgId))} empty={<Notice {...text.empty} />}>
      {(keys) => (
        <Credentials
          label={text.title}
          credentials={keys}
          columns={COLUMNS}
          revoke={(id) => revokeApiKey(orgId, id)}
          revokeWords={text.revoke}
        />
      )}
    </Loaded>
  );
}

const COLUMNS: readonly Column<api.ApiKey>[] = [
  { name: text.columns.scopes, cell: ({ scopes }) => <Scopes scopes={scopes} /> },
  { name: text.columns.by, quiet: true, cell: ({ createdBy }) => <MemberName id={createdBy} /> },
];

function Scopes({ scopes }: { scopes: readonly string[] | null }) {
  if (scopes === null) return text.allScopes;
  if (scopes.length === 0) return text.noScopes;
  return (
    <details className={css.scopes}>
      <summary>{text.scopes(scopes.length)}</summary>
      <ul>
        {scopes.map((scope) => (
          <li key={scope}>
            <code>
              <Untrusted text={scope} />
            </code>
          </li>
        ))}
      </ul>
    </details>
  );
}

const ACCESSES = (['all', 'run', 'read', 'chosen'] as const).map((value) => ({ value, ...text.accesses[value] }));
const FIRST = { name: '', lifetime: '90', access: 'run' as KeyAccess, chosen: [] as readonly Permission[] };

/** Creates an API key, then shows it once. The key is in the memory of that dialog alone. */
function CreateDialog() {
  const { orgId, org } = useOrgInView();
  const host = useDialogHost();
  const form = useForm(FIRST);
  const { name, lifetime, access, chosen } = form.values;
  // A key has no permissions that the person lacks.
  const offered = KEY_PERMISSIONS.filter((one) => org?.permissions.includes(one));
  const toggle = (one: Permission, ticked: boolean): void =>
    form.set({ chosen: ticked ? [...chosen, one] : chosen.filter((other) => other !== one) });
  const expiresInDays = lifetime === 'never' ? null : Number(lifetime);
  const showKey = ({ token }: { token: string }): void =>
    host.show(
      <SecretDialog words={text.secret} token={token}>
        <p>
          {text.use} <code>{text.header}</code>
        </p>
      </SecretDialog>,
    );
  return (
    <DialogForm
      words={text.createWords}
      form={form}
      send={() => createApiKey(orgId, { name, scopes: scopesOf(access, chosen), expiresInDays })}
      onDone={showKey}
    >
      <TextField {...text.name} required maxLength={NAME_CHARACTERS} {...form.field('name')} />
      <Choices legend={text.fields.access} choices={ACCESSES} {...form.field('access')} />
      {access === 'chosen' ? (
        <fieldset className={css.permissions}>
          <legend>{text.fields.permissions}</legend>
          {offered.map((one) => (
            <Check key={one} label={one} value={chosen.includes(one)} onChange={(ticked) => toggle(one, ticked)} />
          ))}
        </fieldset>
      ) : null}
      <SelectField label={text.fields.lifetime} options={text.lifetimes} {...form.field('lifetime')} />
    </DialogForm>
  );
}
