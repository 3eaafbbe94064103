"""Django settings: safe by default, SQLite and an embedded Redis below `var/` unless URLs say otherwise."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import dj_database_url
import plotly
from csp.constants import NONCE, NONE, SELF

from . import env
from .logging import configure, dict_config

BASE_DIR = env.BASE_DIR
VAR = env.VAR
SECRET_KEY = env.secret_key(VAR)
INSTALLATION_ID = env.installation_id(VAR)
DEBUG = env.DEBUG
ALLOWED_HOSTS = env.HOSTS
CSRF_TRUSTED_ORIGINS = env.TRUSTED_ORIGINS

INSTALLED_APPS = [
    "llmgw_site",
    "capacity",
    "quotas",
    "quotas.admin_site.SiteConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "simple_history",
    "django_filters",
    "django_htmx",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "csp",
]
MIDDLEWARE = [
    "llmgw_site.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "llmgw_site.middleware.DeniedMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "llmgw_site.middleware.ChangePasswordMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "llmgw_site.middleware.NulMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "llmgw_site.urls"
WSGI_APPLICATION = "llmgw_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "capacity.context.frame",
            ],
        },
    },
]

# --- stores -------------------------------------------------------------------------------------------------------
SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": VAR / "db.sqlite3",
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    },
}
DATABASES = {
    "default": dj_database_url.parse(env.DATABASE_URL, conn_max_age=60, conn_health_checks=True) if env.DATABASE_URL else SQLITE
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.redis_url(VAR)
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL, "KEY_PREFIX": "llmgw"}}
# no request waits long for a cache that hangs
CACHES["default"]["OPTIONS"] = {"socket_connect_timeout": 1, "socket_timeout": 2}

# --- people -------------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "quotas.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "429.html"

# --- pages --------------------------------------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = VAR / "static"
PLOTLY_PACKAGE_DATA = Path(plotly.__file__).parent / "package_data"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "llmgw_site.finders.PlotlyFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        # Plotly sets style attributes and one style element of its own
        "style-src": [SELF, "'unsafe-inline'"],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.HTTPS
SESSION_COOKIE_NAME = "llmgw_session"
CSRF_COOKIE_NAME = "llmgw_csrf"
SECURE_SSL_REDIRECT = env.HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if env.HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = env.HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.HTTPS else None
LANGUAGE_CODE = "en"
TIME_ZONE = env.TIME_ZONE
USE_TZ = True
USE_I18N = False
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FILES = 500  # as many as an import reads
FILE_UPLOAD_HANDLERS = [
    "llmgw_site.uploads.WithinLimits",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]

# --- API ----------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["knox.auth.TokenAuthentication", "rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["quotas.api.renderers.Json"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "quotas.api.errors.handle",
}
REST_KNOX = {
    "SECURE_HASH_ALGORITHM": "hashlib.sha512",
    "TOKEN_TTL": timedelta(days=90),
    "AUTO_REFRESH": False,
    "AUTH_HEADER_PREFIX": "Bearer",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "llmgw",
    "DESCRIPTION": "The capacity control plane of self-hosted LLMs.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "capacity.api.docs.errors_everywhere",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated", "quotas.api.base.PasswordChosen"],
}

# --- tasks --------------------------------------------------------------------------------------------------------
PASS_SECONDS = env.PASS_SECONDS
SCRAPE_SECONDS = env.SCRAPE_SECONDS
ALLOW_LINK_LOCAL = env.ALLOW_LINK_LOCAL
PROMETHEUS_URL = env.PROMETHEUS_URL
PROMETHEUS_TOKEN = env.prometheus_token()
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 120
CELERY_TASK_SOFT_TIME_LIMIT = 90
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 300}
# a second installation at the same Redis takes none of the first one's tasks
CELERY_TASK_DEFAULT_QUEUE = f"control.{INSTALLATION_ID}"
BENCH_QUEUE = f"bench.{INSTALLATION_ID}"
BENCH_WAKE_SECONDS = 15
CELERY_TASK_ROUTES = {
    "capacity.tasks.scrape*": {"queue": f"scrape.{INSTALLATION_ID}"},
    "capacity.tasks.run_sweeps": {"queue": BENCH_QUEUE},
}
CELERY_BEAT_SCHEDULE = {
    "reconcile": {
        "task": "capacity.tasks.reconcile_all",
        "schedule": PASS_SECONDS,
        "options": {"expires": PASS_SECONDS},
    },
    "scrape": {
        "task": "capacity.tasks.scrape_all",
        "schedule": SCRAPE_SECONDS,
        "options": {"expires": SCRAPE_SECONDS},
    },
    "registered": {
        "task": "capacity.tasks.scrape_registered",
        "schedule": SCRAPE_SECONDS,
        "options": {"expires": SCRAPE_SECONDS},
    },
    "self-check": {"task": "capacity.tasks.self_check", "schedule": 60, "options": {"expires": 50}},
    "heartbeat": {"task": "capacity.tasks.beat_heartbeat", "schedule": 10, "options": {"expires": 10}},
    "sweeps": {
        "task": "capacity.tasks.watch_sweeps",
        "schedule": BENCH_WAKE_SECONDS,
        "options": {"expires": BENCH_WAKE_SECONDS},
    },
    "rollup": {"task": "capacity.tasks.rollup", "schedule": 300, "options": {"expires": 300}},
    "prune": {"task": "capacity.tasks.prune", "schedule": 3600, "options": {"expires": 3600}},
}

LOGGING_CONFIG = None
LOG_LEVEL = env.LOG_LEVEL
configure(dict_config(env.LOG_LEVEL))
