// States of a page beside its content: loading, empty, failed.
import type { BerthError } from '@berth/sdk';
import type { ReactNode } from 'react';
import { en } from '../text/en.ts';
import { Button, buttonClass } from './button.tsx';
import { CopyValue } from './copy.tsx';
import css from './states.module.css';

/** Placeholder rows, visible after 150 ms. */
export function Loading({ rows = 5 }: { rows?: number }) {
  return (
    <output className={css.loading}>
      <span className={css.hidden}>{en.states.loading}</span>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} className={css.bar} aria-hidden />
      ))}
    </output>
  );
}

/** A message in place of content. */
export function Notice({ title, hint, children }: { title: string; hint?: string; children?: ReactNode }) {
  return (
    <section className={css.notice}>
      <h2>{title}</h2>
      {hint === undefined ? null : <p>{hint}</p>}
      {children}
    </section>
  );
}

interface AlertProps {
  title: string;
  /** null: there is no failure, and nothing is shown. */
  error?: Error | null;
  children?: ReactNode;
}

/** A failure above content that stays. */
export function Alert({ title, error, children }: AlertProps) {
  if (error === null) return null;
  if ((error as Partial<BerthError> | undefined)?.code === 'reauthentication_required') return <Reauthenticate />;
  return (
    <div role="alert" className={css.alert}>
      <strong>{title}</strong>
      {error === undefined ? null : <p>{error.message}</p>}
      {children}
      <RequestId error={error} />
    </div>
  );
}

/** The service wants a recent sign-in. The page that confirms it opens in a tab: input stays. */
function Reauthenticate() {
  return (
    <div role="alert" className={css.alert}>
      <strong>{en.states.reauthenticateTitle}</strong>
      <p>{en.states.reauthenticate}</p>
      <p>
        <a className={buttonClass()} href="/confirm" target="_blank" rel="noreferrer">
          {en.states.reauthenticateLink}
        </a>
      </p>
    </div>
  );
}

interface FailureProps {
  error: Error;
  retry: () => void;
  /** Link to the page above. */
  up: ReactNode;
}

/** A failed load: forbidden, gone, or to be tried again. */
export function Failure({ error, retry, up }: FailureProps) {
  const { status } = error as Partial<BerthError>;
  if (status === 403) {
    return (
      <Notice title={en.states.forbiddenTitle}>
        <p>{en.states.forbidden(error.message)}</p>
        {up}
      </Notice>
    );
  }
  if (status === 404) {
    return (
      <Notice title={en.states.goneTitle}>
        <p>{en.states.gone}</p>
        {up}
      </Notice>
    );
  }
  return (
    <Notice title={en.states.errorTitle}>
      <p role="alert">{error.message}</p>
      <RequestId error={error} />
      <p>
        <Button onClick={retry}>{en.states.retry}</Button>
      </p>
    </Notice>
  );
}

function RequestId({ error }: { error: Error | undefined }) {
  const requestId = (error as Partial<BerthError> | undefined)?.requestId;
  if (requestId === undefined) return null;
  return (
    <p className={css.request}>
      {en.states.requestId} <CopyValue value={requestId} what={en.states.requestId} />
    </p>
  );
}
