// Esscher's laboratory: in-context learning, runs on disk and their reports. This header gives the
// public names of esscher::lab; those of the library itself are in esscher/esscher.h.
#pragma once

#include "esscher/esscher.h"
#include "esscher/report/report.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/risk.h"
#include "esscher/store/exec.h"
#include "esscher/store/export.h"
#include "esscher/store/run.h"
#include "esscher/task/regression.h"
#include "esscher/task/task.h"
#include "esscher/training/flow.h"
#include "esscher/training/start.h"
#include "esscher/training/trainer.h"
#include "esscher/training/twins.h"
