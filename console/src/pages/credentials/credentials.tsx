// A list of credentials: API keys or personal tokens, each of which can be revoked.
import type { ReactNode } from 'react';
import { keyStateOf } from '../../rules/api-keys.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { credentialsText as text } from '../../text/credentials.ts';
import { DialogForm } from '../../ui/forms/index.ts';
import {
  Below,
  Button,
  CopyValue,
  Dialog,
  Records,
  Time,
  Untrusted,
  useDialogHost,
  useNow,
  type Column,
} from '../../ui/kit/index.ts';
import css from './secret-dialog.module.css';

interface Credential {
  id: string;
  name: string;
  tokenPrefix: string;
  expiresAt: string | null;
  revokedAt: string | null;
  lastUsedAt: string | null;
}

interface CredentialsProps<T extends Credential> {
  label: string;
  credentials: readonly T[];
  /** Between state and expiry. */
  columns: readonly Column<T>[];
  revoke: (id: string) => Promise<unknown>;
  revokeWords: { hint: string; submit: string; failed: string };
}

export function Credentials<T extends Credential>(props: CredentialsProps<T>) {
  const { label, credentials, columns, revoke, revokeWords } = props;
  const now = useNow();
  return (
    <Records<T>
      label={label}
      records={credentials}
      keyOf={({ id }) => id}
      columns={[
        HEAD,
        { name: text.columns.state, cell: (one) => text.state(keyStateOf(one, now)) },
        ...columns,
        ...USE,
      ]}
      renderActions={(one) => {
        const state = keyStateOf(one, now);
        const words = { ...text.revokeWords(visibleText(one.name)), ...revokeWords };
        return (
          <Button
            kind="danger"
            reason={state === 'active' ? null : text.notActive(state)}
            aria-label={text.revokeOf(visibleText(one.name))}
            dialog={<DialogForm danger words={words} send={() => revoke(one.id)} />}
          >
            {text.revoke}
          </Button>
        );
      }}
    />
  );
}

const HEAD: Column<Credential> = {
  name: text.columns.name,
  cell: ({ name, tokenPrefix }) => (
    <>
      <Untrusted text={name} />
      <Below>
        <code>{tokenPrefix}…</code>
      </Below>
    </>
  ),
};

const USE: readonly Column<Credential>[] = [
  {
    name: text.columns.expires,
    quiet: true,
    cell: ({ expiresAt }) => <Time at={expiresAt} ahead absent={text.never} />,
  },
  { name: text.columns.used, quiet: true, cell: ({ lastUsedAt }) => <Time at={lastUsedAt} absent={text.never} /> },
];

interface SecretDialogProps {
  /** `what`: kind of the credential, for the button that copies it. */
  words: { title: string; hint: string; what: string };
  token: string;
  /** How to use it. */
  children?: ReactNode;
}

/** Shows a new credential once. A press outside does not close it: it would be lost. */
export function SecretDialog({ words: { title, hint, what }, token, children }: SecretDialogProps) {
  const { close } = useDialogHost();
  return (
    <Dialog alert title={title} description={hint} onClose={close}>
      <div className={css.secret}>
        <CopyValue value={token} what={what} />
      </div>
      {children}
      <p>
        <Button kind="primary" onClick={close}>
          {text.done}
        </Button>
      </p>
    </Dialog>
  );
}
