// The person's name and tokens.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import type { api } from '@berth/sdk';
import { AGENT_TOKEN_DAYS, NAME_CHARACTERS } from '@berth/sdk/limits';
import { agentTokensQuery, createAgentToken, renameMe, revokeAgentToken } from '../../queries/me.ts';
import { meQuery } from '../../queries/orgs.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { meText as text } from '../../text/me.ts';
import { Check, DialogForm, SelectField, TextField, useForm } from '../../ui/forms/index.ts';
import { Button, Notice, Page, Section, useDialogHost, type Column } from '../../ui/kit/index.ts';
import { Credentials, SecretDialog } from '../credentials/credentials.tsx';
import { Loaded } from '../frame/content.tsx';
import { NameForm } from './name-form.tsx';
import css from './me.module.css';

export function MePage() {
  return (
    <Page title={text.title}>
      <Loaded query={useQuery(meQuery)} rows={3}>
        {({ email, displayName }) => (
          <div className={css.name}>
            {email === null ? null : <p>{text.email(visibleText(email))}</p>}
            <p>
              <a href="/account">{text.account}</a>
            </p>
            <NameForm
              text={text}
              name={displayName ?? ''}
              sent="body.displayName"
              autoComplete="name"
              send={renameMe}
            />
          </div>
        )}
      </Loaded>
      <Section title={text.tokens}>
        <p>{text.tokensHint}</p>
        <p>
          <Button icon={Plus} dialog={<TokenDialog />}>
            {text.createWords.submit}
          </Button>
        </p>
        <Loaded query={useInfiniteQuery(agentTokensQuery)} rows={3} empty={<Notice title={text.empty} />}>
          {(tokens) => (
            <Credentials
              label={text.tokens}
              credentials={tokens}
              columns={COLUMNS}
              revoke={revokeAgentToken}
              revokeWords={text.revoke}
            />
          )}
        </Loaded>
      </Section>
    </Page>
  );
}

const COLUMNS: readonly Column<api.AgentToken>[] = [
  {
    name: text.access,
    cell: ({ access, canApprove, canWake }) =>
      [text.accessOf(access), canApprove ? text.approves : null, canWake ? text.wakes : null]
        .filter((word) => word !== null)
        .join(', '),
  },
];

const RANGE = { min: AGENT_TOKEN_DAYS.min, max: AGENT_TOKEN_DAYS.max };
const FIRST = {
  name: '',
  access: 'read_send' as keyof typeof text.accesses,
  canApprove: false,
  canWake: false,
  days: String(AGENT_TOKEN_DAYS.default),
};

/** Creates an agent token, then shows it once. It is in the memory of that dialog alone. */
function TokenDialog() {
  const host = useDialogHost();
  const form = useForm(FIRST);
  const { name, access, canApprove, canWake, days } = form.values;
  const sends = access === 'read_send';
  const allowed = { canApprove: sends && canApprove, canWake: sends && canWake };
  const showToken = ({ token }: { token: string }): void =>
    host.show(<SecretDialog words={text.secret} token={token} />);
  return (
    <DialogForm
      words={text.createWords}
      form={form}
      send={() => createAgentToken({ name, access, expiresInDays: Number(days), ...allowed })}
      onDone={showToken}
    >
      <TextField {...text.tokenName} required maxLength={NAME_CHARACTERS} {...form.field('name')} />
      <SelectField label={text.access} options={text.accesses} {...form.field('access')} />
      {sends ? (
        <>
          <Check label={text.canApprove} {...form.field('canApprove')} />
          <Check label={text.canWake} {...form.field('canWake')} />
        </>
      ) : null}
      <TextField label={text.days} type="number" required step={1} {...RANGE} {...form.field('days')} />
    </DialogForm>
  );
}
