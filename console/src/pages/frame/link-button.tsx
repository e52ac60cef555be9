import type { LucideIcon } from 'lucide-react';
import { Link, type LinkProps } from 'react-router';
import { Button, buttonClass } from '../../ui/kit/index.ts';

interface LinkButtonProps extends LinkProps {
  icon: LucideIcon;
  /** Why the link is not offered; null: it is. */
  reason: string | null;
}

/** The main link of a page; while it is not possible a button that says why. */
export function LinkButton({ icon: Icon, reason, children, ...link }: LinkButtonProps) {
  if (reason !== null) {
    return (
      <Button kind="primary" icon={Icon} reason={reason}>
        {children}
      </Button>
    );
  }
  return (
    <Link {...link} className={buttonClass('primary')}>
      <Icon aria-hidden />
      {children}
    </Link>
  );
}
