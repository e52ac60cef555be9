// Buttons. A button with a reason is visible and focusable, does nothing, and explains why.
import type { LucideIcon } from 'lucide-react';
import { useId, useState, type ComponentProps, type ReactNode } from 'react';
import { useDialogHost } from './dialog-host.tsx';
import css from './button.module.css';

type Kind = 'primary' | 'plain' | 'danger' | 'quiet';

interface ButtonProps extends Omit<ComponentProps<'button'>, 'disabled' | 'type'> {
  kind?: Kind;
  /** Why the button does nothing; null: it works. */
  reason?: string | null;
  busy?: boolean;
  icon?: LucideIcon;
  /** Opened by a press. */
  dialog?: ReactNode;
  type?: 'button' | 'submit';
}

export function buttonClass(kind: Kind = 'plain'): string {
  return `${css.button} ${css[kind]}`;
}

export function Button({ kind = 'plain', reason = null, busy = false, ...rest }: ButtonProps) {
  const { type = 'button', className = buttonClass(kind), icon: Icon, dialog, children, ...others } = rest;
  const id = useId();
  const { show } = useDialogHost();
  const [dismissed, setDismissed] = useState(false);
  const off = reason !== null || busy;
  const button = (
    <button
      {...others}
      type={type}
      className={className}
      aria-haspopup={dialog === undefined ? others['aria-haspopup'] : 'dialog'}
      aria-disabled={off || undefined}
      aria-busy={busy || undefined}
      aria-describedby={reason === null ? others['aria-describedby'] : id}
      onClick={(event) => {
        if (off) event.preventDefault();
        else if (dialog === undefined) others.onClick?.(event);
        else show(dialog);
      }}
    >
      {Icon === undefined ? null : <Icon aria-hidden />}
      {children}
    </button>
  );
  // The same elements with and without a reason: a change of it leaves the focus where it is.
  return (
    <span
      className={css.explained}
      data-dismissed={dismissed || undefined}
      onKeyDown={(event) => setDismissed(event.key === 'Escape')}
      onMouseEnter={() => setDismissed(false)}
      onBlur={() => setDismissed(false)}
      role="presentation"
    >
      {button}
      {reason === null ? null : (
        <span role="tooltip" id={id} className={css.reason}>
          {reason}
        </span>
      )}
    </span>
  );
}
