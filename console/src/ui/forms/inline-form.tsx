import type { ReactNode } from 'react';
import { Button } from '../button.tsx';
import { Alert } from '../states.tsx';

interface InlineFormProps {
  className: string | undefined;
  /** Title of the failure. */
  failed: string;
  error: Error | null;
  submit: string;
  primary?: boolean;
  /** Why it cannot be submitted; null: it can. */
  reason?: string | null;
  busy: boolean;
  onSubmit: () => void;
  children: ReactNode;
}

/** A form of a page: failure of the last attempt, fields, and a button. */
export function InlineForm(props: InlineFormProps) {
  const { className, failed, error, submit, primary = false, reason = null, busy, onSubmit, children } = props;
  return (
    <form
      className={className}
      onSubmit={(event) => {
        event.preventDefault();
        if (reason === null) onSubmit();
      }}
    >
      <Alert title={failed} error={error} />
      {children}
      <p>
        <Button type="submit" kind={primary ? 'primary' : 'plain'} reason={reason} busy={busy}>
          {submit}
        </Button>
      </p>
    </form>
  );
}
