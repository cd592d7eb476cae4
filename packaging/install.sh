#!/bin/sh
# Installs, upgrades or removes the ExitPilot agent of this machine. See usage below.
set -eu
# Ranges of characters mean bytes.
LC_ALL=C
export LC_ALL

# The panel writes its own address here when it hands this script out.
PANEL_URL=''

usage() {
    cat <<'END'
Usage: install.sh [--panel ADDRESS --secret SECRET] [options]

Installs the ExitPilot agent as a systemd service. Run it again without --panel and --secret to upgrade.

  --panel ADDRESS    the panel, as ws://HOST:PORT, wss://HOST:PORT or HOST:PORT
  --secret SECRET    the node's secret; EXITPILOT_AGENT_SECRET in the environment does as well, and is not seen by others
  --panel-ca FILE    PEM file of a further certificate authority for the panel
  --binary FILE      the agent to install; default: exitpilot-agent beside this script, else the panel's
  --no-restart       install only; the new agent starts with the next restart of the service
  --root FOLDER      install below this folder and start nothing
  --uninstall        stop and remove the agent; its state and settings too with --purge
  --purge            see --uninstall
  --help             this text

Files: /usr/local/bin/exitpilot-agent, /etc/exitpilot/agent.env (mode 600), /etc/systemd/system/exitpilot-agent.service.
END
}

say() { printf '%s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
value() { [ "$#" -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value"; printf '%s' "$2"; }

# Says whether the agent has reached the panel since it was started, which takes a moment.
tell() {
    id=$(systemctl show --property InvocationID --value exitpilot-agent)
    left=15 log=''
    while [ "$left" -gt 0 ]; do
        log=$(journalctl --quiet --output cat "_SYSTEMD_INVOCATION_ID=$id" 2>/dev/null || true)
        case $log in
            *'connected to panel'*)
                say 'The agent is running and connected to the panel. Its log: journalctl -u exitpilot-agent'
                return
                ;;
            *'refused the node secret'*)
                fail 'the agent is running, but the panel refuses its secret: run this again with the one that the page shows'
                ;;
        esac
        sleep 1
        left=$((left - 1))
    done
    say 'The agent is running, but has not reached the panel yet. It goes on trying. The end of its log (journalctl -u exitpilot-agent):'
    printf '%s\n' "$log" | tail -n 3
}

# All of it is read before any of it is done: what came only in part does nothing.
main() {
panel='' secret=${EXITPILOT_AGENT_SECRET:-} panel_ca='' binary='' root='' restart=1 uninstall=0 purge=0
while [ "$#" -gt 0 ]; do
    case $1 in
        --panel) panel=$(value "$@"); shift ;;
        --secret) secret=$(value "$@"); shift ;;
        --panel-ca) panel_ca=$(value "$@"); shift ;;
        --binary) binary=$(value "$@"); shift ;;
        --root) root=$(value "$@"); shift ;;
        --no-restart) restart=0 ;;
        --uninstall) uninstall=1 ;;
        --purge) purge=1 ;;
        --help | -h) usage; exit 0 ;;
        *) fail "unknown option $1; see --help" ;;
    esac
    shift
done

program=$root/usr/local/bin/exitpilot-agent
settings=$root/etc/exitpilot/agent.env
unit=$root/etc/systemd/system/exitpilot-agent.service
state=$root/var/lib/exitpilot-agent

# A line break in a value would be a further setting.
for text in "$panel" "$secret" "$panel_ca"; do
    case $text in *[!!-~]*) fail "the value '$text' holds a space or a character that has no place there" ;; esac
done
[ -n "$root" ] || [ "$(id -u)" = 0 ] || fail 'run it as root (sudo), or with --root FOLDER'
systemd=0
if [ -z "$root" ] && [ -d /run/systemd/system ]; then systemd=1; fi

if [ "$uninstall" = 1 ]; then
    if [ "$systemd" = 1 ]; then systemctl disable --now exitpilot-agent 2>/dev/null || true; fi
    rm -f "$program" "$unit"
    if [ "$systemd" = 1 ]; then systemctl daemon-reload; fi
    if [ "$purge" = 1 ]; then
        rm -rf "$settings" "$state"
        # With DynamicUser the state is there.
        rm -rf "$root/var/lib/private/exitpilot-agent"
        say 'The agent, its settings and its state are removed.'
    else
        say "The agent is removed. Kept: $settings and $state (--purge removes them)."
    fi
    exit 0
fi

# All that can be wrong is found before anything is changed.
if [ ! -e "$settings" ]; then
    [ -n "$panel" ] || fail 'give the address of the panel: --panel ADDRESS'
    [ -n "$secret" ] || fail "give the node's secret: --secret SECRET (the page shows it when a node is made)"
elif [ -n "$panel$secret$panel_ca" ]; then
    [ -n "$panel" ] && [ -n "$secret" ] || fail "to change $settings give --panel and --secret together"
fi
[ -z "$panel_ca" ] || [ -r "$panel_ca" ] || fail "cannot read $panel_ca"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fetch() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL --retry 3 -o "$2" "$1" || fail "cannot fetch $1"
    elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$1" || fail "cannot fetch $1"
    else
        fail 'neither curl nor wget is here; install one, or give --binary FILE'
    fi
}

beside=$(dirname "$0")/exitpilot-agent
if [ -n "$binary" ]; then
    [ -r "$binary" ] || fail "cannot read $binary"
elif [ -f "$0" ] && [ -f "$beside" ]; then
    binary=$beside
elif [ -n "$PANEL_URL" ]; then
    arch=$(uname -m)
    say "Fetching the agent for $arch from $PANEL_URL"
    fetch "$PANEL_URL/agent/$arch" "$work/agent"
    fetch "$PANEL_URL/agent/$arch.sha256" "$work/sum"
    wanted=$(cut -d ' ' -f 1 "$work/sum")
    got=$(sha256sum "$work/agent" | cut -d ' ' -f 1)
    [ "$wanted" = "$got" ] || fail "what came is damaged (sha256 $got, not $wanted); try again"
    binary=$work/agent
else
    fail 'give the agent: --binary FILE'
fi
cp "$binary" "$work/new"
chmod 755 "$work/new"
version=$("$work/new" --version 2>/dev/null) || fail "$binary does not run on this machine"

if [ -e "$program" ] && cmp -s "$work/new" "$program"; then
    changed=0
    say "$version is installed already"
else
    changed=1
    mkdir -p "$(dirname "$program")"
    # Beside it and then renamed: the old one is running.
    cp "$work/new" "$program.new"
    mv "$program.new" "$program"
    say "Installed $version as $program"
fi

if [ -n "$panel" ]; then
    mkdir -p "$(dirname "$settings")"
    chmod 700 "$(dirname "$settings")"
    (
        umask 077
        {
            say "EXITPILOT_AGENT_PANEL=$panel"
            say "EXITPILOT_AGENT_SECRET=$secret"
            [ -z "$panel_ca" ] || say "EXITPILOT_AGENT_PANEL_CA=$panel_ca"
        } >"$settings.new"
    )
    mv "$settings.new" "$settings"
    changed=1
    say "Wrote $settings"
fi

mkdir -p "$(dirname "$unit")"
cat >"$work/unit" <<'END'
@UNIT@
END
# As it is in a folder of its own, and not as the panel hands it out.
if [ "$(cat "$work/unit")" = '@''UNIT@' ]; then cp "$(dirname "$0")/exitpilot-agent.service" "$work/unit"; fi
if ! cmp -s "$work/unit" "$unit"; then
    cp "$work/unit" "$unit"
    changed=1
fi

if [ "$systemd" = 0 ]; then
    if [ -z "$root" ]; then
        say 'There is no systemd here. Start the agent like this, and after every boot:'
        say "  set -a; . $settings; set +a; $program run"
    fi
    exit 0
fi
systemctl daemon-reload
systemctl enable exitpilot-agent 2>/dev/null
if ! systemctl is-active --quiet exitpilot-agent; then
    systemctl start exitpilot-agent
    tell
elif [ "$changed" = 0 ]; then
    say 'Nothing has changed; the agent goes on.'
elif [ "$restart" = 1 ]; then
    say 'Restarting the agent: connections through this node are cut and have to be opened anew.'
    systemctl restart exitpilot-agent
    tell
else
    say 'The old agent goes on. At a quiet moment: systemctl restart exitpilot-agent (cuts the connections through this node).'
fi
}

main "$@"
